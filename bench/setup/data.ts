/**
 * The rows of the benchmark, derived from their number: the seeder, the requests, the baselines and the checks compute
 * the same row independently. ASCII only, so that characters are bytes.
 */

/** A post as a client sends it. */
export interface Row {
  readonly id: string
  readonly title: string
  readonly body: string
  readonly views: number
  readonly published: boolean
  readonly authorId: string
  readonly tags: readonly string[]
  readonly createdAt: string
}

/** Rows of one author, whatever the table's size: an indexed list touches as many rows at 10 k as at 1 M. */
export const rowsPerAuthor = 100
/** Three of four. */
export const publishedPerAuthor = 75
/** Rows that contain a topic word, whatever the table's size. */
export const rowsPerTopic = 50

const firstRowAtMs = Date.UTC(2025, 0, 1)
const rowIntervalMs = 1000

export const authorCount = (rows: number): number => Math.max(1, Math.floor(rows / rowsPerAuthor))
export const topicCount = (rows: number): number => Math.max(1, Math.floor(rows / rowsPerTopic))

/** Three rows in four, the same share of every author's. */
export const isPublished = (number: number, rows: number): boolean => Math.floor(number / authorCount(rows)) % 4 !== 0

/** The table with a rule stays small: the cost of a rule does not depend on the table's size. */
export const draftRows = (rows: number): number => Math.min(rows, 10_000)

/** Row `number` (from 0) of a table of `rows` rows. */
export function rowAt(number: number, rows: number): Row {
  const authors = authorCount(rows)
  return {
    id: idAt(number),
    createdAt: new Date(firstRowAtMs + number * rowIntervalMs).toISOString(),
    ...contentAt(number),
    authorId: authorAt(number % authors),
    published: isPublished(number, rows),
    body: `${words(number, 39)} ${topicAt(number % topicCount(rows))}`,
  }
}

/**
 * A row that is not seeded, as an insert sends it: without id and times, and with an author outside the seeded ones so
 * that totals of lists do not change.
 */
export function newRowAt(number: number): Omit<Row, 'id' | 'createdAt'> {
  return {
    ...contentAt(number),
    authorId: `${writerPrefix}${firstName + (hash(number) % writerCount)}`,
    published: true,
    body: words(number, 40),
  }
}

function contentAt(number: number): Pick<Row, 'title' | 'views' | 'tags'> {
  return {
    title: words(number + 0x5bd1e995, 6),
    views: hash(number) % 100_000,
    tags: [wordAt(hash(number + 1) % 50), wordAt(hash(number + 2) % 50)],
  }
}

/**
 * First number within names: of constant width, so that no topic is a prefix of another (the last word of a search is a
 * prefix), and without padding, so that pgbench generates the same names.
 */
export const firstName = 1_000_000
export const authorPrefix = 'author-'
export const writerPrefix = 'writer-'
export const topicPrefix = 'zq'
export const writerCount = 1000

export const authorAt = (number: number): string => `${authorPrefix}${firstName + number}`
export const topicAt = (number: number): string => `${topicPrefix}${firstName + number}`

/** Prefix of seeded ids: UUID v7 in the order of the rows, older than any that the server generates. */
export const seededIdPrefix = '01940000-0000-7000-8000-'
/** The last twelve digits of the first id; the following ids increment it. */
export const firstId = 100_000_000_000
export const idAt = (number: number): string => `${seededIdPrefix}${firstId + number}`

/** Words of Zipf-like frequency out of 2,000. */
function words(seed: number, count: number): string {
  let text = ''
  let state = hash(seed + 7)
  for (let i = 0; i < count; i++) {
    state = hash(state + i)
    // The product of two uniform numbers favors the first words, as language does.
    const rank = Math.floor(((state & 0xffff) / 0x10000) * ((state >>> 16) / 0x10000) * vocabulary)
    text += i === 0 ? wordAt(rank) : ` ${wordAt(rank)}`
  }
  return text
}

const vocabulary = 2000
const consonants = 'bcdfghjklmnprstvw'
const vowels = 'aeiou'

const wordList = Array.from({ length: vocabulary }, (_, number) => {
  let word = ''
  for (let left = number + 85; left > 0; left = Math.floor(left / 85)) {
    word += `${consonants[left % 17]}${vowels[Math.floor(left / 17) % 5]}`
  }
  return word
})

const wordAt = (number: number): string => wordList[number] as string

/** A well-mixed unsigned 32-bit number (the finalizer of MurmurHash3). */
export function hash(value: number): number {
  let h = value | 0
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}
