/**
 * The words of an index that a searched word matches with typos. All of them are found: what a search finds among the
 * records that its caller may read must not depend on words of others, as it would if only the best words were taken.
 */
import { callerKey } from '../../../access/caller.ts'
import { createSlices } from '../../../base/concurrency/slices.ts'
import { ident, type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { lastCharacter, termTable } from '../../../engines/term-index/term-index.ts'
import { queryTimeout } from '../../../errors.ts'
import { typoSearchMs, typoWordsRead } from '../../../limits/api.ts'
import type { TableCall } from '../resolve-table.ts'
import type { SearchTerm } from './search-terms.ts'
import { countTypos } from './typos.ts'

/** For a searched word, the words with one typo, and those with two. */
export type TypoWords = ReadonlyMap<SearchTerm, readonly [one: readonly string[], two: readonly string[]]>

type SearchedWord = Extract<SearchTerm, { kind: 'word' }>

/** Words of the index in order, after one of them: each is found by a seek from the one before it. */
function wordsAfter({ database, table }: TableCall, after: string, end: string): SqlText {
  const alias = ident('_of')
  const from = database.dialect.from(termTable(table), alias)
  const next = (word: SqlText): SqlText =>
    sql`(SELECT min(${alias}.term) FROM ${from} WHERE ${alias}.term > ${word} AND ${alias}.term < ${end})`
  return sql`WITH RECURSIVE "_words"(term) AS (
      SELECT ${next(sql`${after}`)} UNION ALL SELECT ${next(sql`"_words".term`)} FROM "_words" WHERE "_words".term IS NOT NULL
    ) SELECT term FROM "_words" WHERE term IS NOT NULL LIMIT ${typoWordsRead}`
}

/** Finds the words for all terms of a search. Throws `query-timeout` for an index of too many words. */
export async function findTypoWords(call: TableCall, terms: readonly SearchTerm[]): Promise<TypoWords> {
  const found = new Map<SearchTerm, [string[], string[]]>()
  const byInitial = new Map<string, SearchedWord[]>()
  for (const term of terms)
    if (term.kind === 'word' && term.typos > 0) {
      const initial = term.points[0] as string
      byInitial.set(initial, [...(byInitial.get(initial) ?? []), term])
      found.set(term, [[], []])
    }
  const untilMs = performance.now() + typoSearchMs
  const nextSlice = createSlices()
  for (const [initial, searched] of byInitial)
    for (let after: string | undefined = initial; after !== undefined; ) {
      if (performance.now() > untilMs)
        throw queryTimeout('q: the index has too many words to compare; search for fewer words at a time')
      const query = wordsAfter(call, after, initial + lastCharacter)
      const words: { term: string }[] = await call.database.all(query, undefined, callerKey(call.caller))
      for (const { term } of words) addTypos(found, searched, term)
      const pause = nextSlice()
      if (pause) await pause
      after = words.length === typoWordsRead ? words.at(-1)?.term : undefined
    }
  return found
}

function addTypos(found: Map<SearchTerm, [string[], string[]]>, searched: readonly SearchedWord[], word: string): void {
  const points = Array.from(word)
  for (const term of searched) {
    const typos = countTypos(term.points, points, term.typos)
    if (typos === 1 || typos === 2) found.get(term)?.[typos - 1]?.push(word)
  }
}
