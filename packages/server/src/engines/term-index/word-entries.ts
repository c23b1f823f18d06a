/**
 * The entries of a word in the dictionary of a term index, and those under which a search looks for the words that it
 * may mean.
 *
 * The first letter is always right. The letters after it are cut into two pieces more than the typos that are
 * allowed, so that at least two pieces of a word are in the searched text as they are, each moved by no more letters
 * than there are typos (the pigeonhole principle, as in Pass-Join). An entry is the first letter, the length, and two
 * pieces, so that a search needs a number of lookups that depends on its own word alone, and reads only words that
 * agree with it in these. A swap of two letters of different pieces is one typo that changes both: such a piece is also
 * looked up as it was before the swap.
 */
import { codePointLength } from '../../base/text/text.ts'
import { typoCharsMax } from '../../limits/api.ts'
import { ident, join, type SqlText, sql } from '../sql/sql-text.ts'
import { comparedMark, partMark } from './term-index.ts'

/** The shortest and the longest words that a searched word may mean. */
export const dictionaryCharsMin = 3
export const dictionaryCharsMax = typoCharsMax + 2

/** Longest words of three pieces, which are searched with one typo only; longer words have four. */
const threePieceCharsMax = 5

const piecesOf = (chars: number): 3 | 4 => (chars <= threePieceCharsMax ? 3 : 4)

type Pair = readonly [one: number, other: number]

const pairs: Readonly<Record<3 | 4, readonly Pair[]>> = {
  3: [
    [0, 1],
    [0, 2],
    [1, 2],
  ],
  4: [
    [0, 1],
    [0, 2],
    [0, 3],
    [1, 2],
    [1, 3],
    [2, 3],
  ],
}

/** One of these is right in a word of four pieces with one typo. */
const halves: readonly Pair[] = [
  [0, 1],
  [2, 3],
]

const constant = (value: number | string): SqlText => ({
  text: typeof value === 'number' ? String(value) : `'${value}'`,
  values: [],
})

/** Whether a term is a word of the dictionary; `isDictionaryWord` in SQL. */
export const isInDictionary = (term: string): boolean => {
  if (term.startsWith(partMark) || term.startsWith(comparedMark)) return false
  const chars = codePointLength(term)
  return chars >= dictionaryCharsMin && chars <= dictionaryCharsMax
}

export const isDictionaryWord = (term: SqlText): SqlText =>
  sql`length(${term}) BETWEEN ${constant(dictionaryCharsMin)} AND ${constant(dictionaryCharsMax)}
    AND substr(${term}, 1, 1) NOT IN (${constant(partMark)}, ${constant(comparedMark)})`

/** The columns of a word that is cut into pieces, for each of which a text is evaluated once. */
function pieceColumn(at: number): SqlText {
  const start = (piece: number): SqlText => sql`${constant(piece)} * (chars - 1) / pieces`
  return sql`substr(word, 2 + ${start(at)}, ${start(at + 1)} - ${start(at)}) AS ${ident(`_${at}`)}`
}

function entriesOfPairs(words: SqlText, included: readonly Pair[]): SqlText {
  const counted = sql`SELECT word, length(word) AS chars,
    CASE WHEN length(word) <= ${constant(threePieceCharsMax)} THEN 3 ELSE 4 END AS pieces FROM (${words}) AS "_word"`
  const cut = sql`SELECT word, pieces, substr(word, 1, 1) || CAST(chars AS TEXT) AS head,
    ${join([0, 1, 2, 3].map(pieceColumn), ', ')} FROM (${counted}) AS "_counted"`
  const ofPair = ([one, other]: Pair): SqlText => {
    const text = sql`head || ${constant(`${one}${other}`)} || ${ident(`_${one}`)} || ${ident(`_${other}`)}`
    return sql`SELECT ${text} AS entry, word FROM "_cut" ${other === 3 ? sql`WHERE pieces = 4` : sql``}`
  }
  // SQLite takes a union in brackets only, both in a trigger and as the list of a search by index.
  return sql`SELECT entry, word FROM (
    WITH "_cut" AS MATERIALIZED (${cut}) ${join(included.map(ofPair), ' UNION ALL ')}
  ) AS "_entries"`
}

/** Selects `entry` and `word` for all entries of the words that a query selects as `word`. */
export const entriesOf = (words: SqlText): SqlText => entriesOfPairs(words, pairs[4])

/** The same for one entry of each word. */
export const firstEntriesOf = (words: SqlText): SqlText => entriesOfPairs(words, pairs[4].slice(0, 1))

/** A piece as it may be in the searched word, and the typos that this takes beside its move. */
interface Reading {
  readonly text: string
  readonly swaps: number
}

/** The readings of the letters `start` to `end` of `length`, which are `move` later in the searched `tail`. */
function readingsOf(tail: readonly string[], [start, end]: Pair, length: number, move: number): Reading[] {
  const [from, to] = [start + move, end + move]
  if (from < 0 || to > tail.length) return []
  const letters = tail.slice(from, to)
  const readings = [{ text: letters.join(''), swaps: 0 }]
  if (letters.length === 0) return readings
  const before = start > 0 ? tail[from - 1] : undefined
  const after = end < length ? tail[to] : undefined
  if (before !== undefined) readings.push({ text: before + letters.slice(1).join(''), swaps: 1 })
  if (after !== undefined) readings.push({ text: letters.slice(0, -1).join('') + after, swaps: 1 })
  if (before !== undefined && after !== undefined && letters.length > 1)
    readings.push({ text: before + letters.slice(1, -1).join('') + after, swaps: 2 })
  return readings
}

/**
 * The entries of which a word of the dictionary has at least one if it has at most so many typos in comparison with the
 * searched word, which is given as code points. Other words may have them too.
 */
export function entriesNear(points: readonly string[], typos: 1 | 2): ReadonlySet<string> {
  const [initial = '', ...tail] = points
  const entries = new Set<string>()
  const shortest = Math.max(dictionaryCharsMin, points.length - typos)
  for (let chars = shortest; chars <= Math.min(dictionaryCharsMax, points.length + typos); chars++) {
    const pieces = piecesOf(chars)
    for (const pair of typos === 1 && pieces === 4 ? halves : pairs[pieces]) {
      const [one, other] = pair.map((at): Pair => [startOf(at, pieces, chars), startOf(at + 1, pieces, chars)]) as [
        Pair,
        Pair,
      ]
      for (const [move, otherMove, left] of movesOf(points.length - chars, typos))
        for (const first of readingsOf(tail, one, chars - 1, move))
          for (const second of readingsOf(tail, other, chars - 1, otherMove))
            if (first.swaps + second.swaps <= left)
              entries.add(`${initial}${chars}${pair.join('')}${first.text}${second.text}`)
    }
  }
  return entries
}

const startOf = (piece: number, pieces: number, chars: number): number => Math.floor((piece * (chars - 1)) / pieces)

/** The moves of two pieces where the searched word has so many letters more, and how many typos are left. */
function movesOf(longer: number, typos: number): (readonly [move: number, otherMove: number, left: number])[] {
  const moves = Array.from({ length: 2 * typos + 1 }, (_, at) => at - typos)
  return moves.flatMap((move) =>
    moves
      .map(
        (other) => [move, other, typos - Math.abs(move) - Math.abs(other - move) - Math.abs(longer - other)] as const,
      )
      .filter(([, , left]) => left >= 0),
  )
}
