/**
 * The words of an index that a searched word matches with typos, from the dictionary of the table. All of them are
 * found: what a search finds among the records that its caller may read must not depend on words of others, as it would
 * if only the best words were taken.
 */
import { callerKey } from '../../../access/caller.ts'
import { createSlices } from '../../../base/concurrency/slices.ts'
import { ident, sql } from '../../../engines/sql/sql-text.ts'
import { wordTable } from '../../../engines/term-index/term-index.ts'
import { entriesNear } from '../../../engines/term-index/word-entries.ts'
import { queryTimeout } from '../../../errors.ts'
import { typoSearchMs, typoWordsRead } from '../../../limits/api.ts'
import type { TableCall } from '../resolve-table.ts'
import type { SearchTerm } from './search-terms.ts'
import { countTypos } from './typos.ts'

/** For a searched word, the words with one typo, and those with two. */
export type TypoWords = ReadonlyMap<SearchTerm, readonly [one: readonly string[], two: readonly string[]]>

type SearchedWord = Extract<SearchTerm, { kind: 'word' }>
type Matches = readonly [one: Set<string>, two: Set<string>]

/** Finds the words for all terms of a search. Throws `query-timeout` for too many similar words. */
export async function findTypoWords(call: TableCall, terms: readonly SearchTerm[]): Promise<TypoWords> {
  const found = new Map<SearchedWord, Matches>()
  const entries = new Set<string>()
  const nextSlice = createSlices()
  for (const term of terms)
    if (term.kind === 'word' && term.typos > 0) {
      found.set(term, [new Set(), new Set()])
      for (const entry of entriesNear(term.points, term.typos as 1 | 2)) entries.add(entry)
      const pause = nextSlice()
      if (pause) await pause
    }
  for await (const words of readWords(call, [...entries]))
    for (const word of words) {
      addTypos(found, word)
      const pause = nextSlice()
      if (pause) await pause
    }
  return new Map([...found].map(([term, [one, two]]) => [term, [[...one], [...two]]]))
}

/** Words of the dictionary with any of the entries, each at least once; every statement reads a bounded number. */
async function* readWords(call: TableCall, entries: readonly string[]): AsyncGenerator<readonly string[]> {
  const untilMs = performance.now() + typoSearchMs
  const parts: (readonly string[])[] = entries.length > 0 ? [entries] : []
  for (let part = parts.pop(); part; part = parts.pop()) {
    let after = ''
    for (;;) {
      if (performance.now() > untilMs)
        throw queryTimeout('q: the index has too many similar words; search for fewer words at a time')
      const words = await readPart(call, part, after)
      const isAll = words.length < typoWordsRead
      if (!isAll && part.length > 1) {
        const middle = part.length >> 1
        parts.push(part.slice(0, middle), part.slice(middle))
        break
      }
      yield words
      if (isAll) break
      after = words.at(-1) as string
    }
  }
}

/** Up to `typoWordsRead` words; of a single entry, the next ones in order. */
async function readPart(
  { database, table, caller }: TableCall,
  entries: readonly string[],
  after: string,
): Promise<readonly string[]> {
  const alias = ident('_known')
  const from = database.dialect.from(wordTable(table), alias)
  const [first = ''] = entries
  const query =
    entries.length > 1
      ? database.dialect.termIndex.wordsUnder(from, entries, typoWordsRead)
      : sql`SELECT ${alias}.word AS word FROM ${from} WHERE ${alias}.entry = ${first} AND ${alias}.word > ${after}
          ORDER BY ${alias}.word LIMIT ${typoWordsRead}`
  const rows: { word: string }[] = await database.all(query, undefined, callerKey(caller))
  return rows.map(({ word }) => word)
}

function addTypos(found: ReadonlyMap<SearchedWord, Matches>, word: string): void {
  const points = Array.from(word)
  for (const [term, matches] of found) {
    const typos = countTypos(term.points, points, term.typos)
    if (typos === 1 || typos === 2) matches[typos - 1]?.add(word)
  }
}
