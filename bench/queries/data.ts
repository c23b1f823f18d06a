/** The rows of the query benchmark, derived from their number. Ids fit every peer: 15 lowercase letters and digits. */
import { readCountries } from '../../examples/atlas/countries.ts'
import { readPlaces } from '../../examples/atlas/places.ts'
import { hash } from '../setup/data.ts'

export interface Counts {
  readonly authors: number
  readonly posts: number
  readonly orders: number
}

export const commentsPerPost = 3
export const topics = 100
export const buyers = 10_000
export const statuses = ['open', 'paid', 'packed', 'sent', 'returned', 'canceled'] as const

type Values = Readonly<Record<string, string | number | readonly [longitude: number, latitude: number]>>

/** The places of the atlas example. */
export const places = readPlaces(new Map(readCountries().map(({ id, name }) => [id, name])))

const idOf = (kind: string, number: number): string => `${kind}${String(number).padStart(15 - kind.length, '0')}`

export const topicAt = (number: number): string => `topic-${number % topics}`

const sentence = (seed: number, count: number): string =>
  Array.from({ length: count }, (_, at) => `w${hash(seed * 31 + at) % 2000}`).join(' ')

const firstOrderAtMs = Date.UTC(2025, 0, 1)
const orderIntervalMs = 30_000

/** Rows by table, in an order in which referenced rows come first. */
export const rowsOf = (
  counts: Counts,
): Readonly<Record<string, { count: number; at: (number: number) => Values }>> => ({
  authors: {
    count: counts.authors,
    at: (number) => ({ id: idOf('a', number), name: `Author ${number}`, bio: sentence(number, 12) }),
  },
  posts: {
    count: counts.posts,
    at: (number) => ({
      id: idOf('p', number),
      title: sentence(number, 6),
      body: sentence(number + 1, 40),
      topic: topicAt(number),
      rank: number,
      authorId: idOf('a', hash(number) % counts.authors),
    }),
  },
  comments: {
    count: counts.posts * commentsPerPost,
    at: (number) => ({
      id: idOf('c', number),
      text: sentence(number, 15),
      rank: number,
      postId: idOf('p', Math.floor(number / commentsPerPost)),
    }),
  },
  places: {
    count: places.length,
    at: (number) => {
      const place = places[number] as (typeof places)[number]
      return { id: idOf('l', number), name: place.name, position: place.position }
    },
  },
  orders: {
    count: counts.orders,
    at: (number) => ({
      id: idOf('o', number),
      status: statuses[hash(number) % statuses.length] as string,
      amount: hash(number + 7) % 10_000,
      buyerId: `buyer-${hash(number + 13) % buyers}`,
      orderedAt: new Date(firstOrderAtMs + number * orderIntervalMs).toISOString(),
    }),
  },
})
