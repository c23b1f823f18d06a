/**
 * The SQL of a search with a ranking: the rows with all its terms, each with a score that is the same on every engine.
 * A term counts with its best match in the row. The score is a number: the qualities of the matches first, then the
 * weights of their fields.
 */
import { ident, join, type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { lastCharacter, termsColumn, termTable } from '../../../engines/term-index/term-index.ts'
import {
  partsLookedUpMax,
  searchWeightMax,
  searchWordsMax,
  unspacedPartChars,
  wordPartChars,
} from '../../../limits/api.ts'
import type { TableCall } from '../resolve-table.ts'
import type { SearchTerm } from './search-terms.ts'
import { partsOf, wordPart } from './terms.ts'
import type { TypoWords } from './typo-words.ts'

/** What one step of quality counts: more than the weights of all words of a search. */
const qualityStep = searchWordsMax * searchWeightMax + 1

/** The quality of a match, best first: a complete word, the start of a word, a part of one, one typo, two. */
const quality = { word: 4 * qualityStep, prefix: 3 * qualityStep, part: 2 * qualityStep, typo: qualityStep, typos: 0 }

/** Rows with a match. */
interface Matches {
  /** Selects `key` and `value` of rows; a row may occur more than once. */
  readonly rows: SqlText
  /** Selects what the engine visits for it in the index, in any order. */
  readonly visited: readonly SqlText[]
}

export interface RankedMatches {
  /** Joins each row of the table to its score. */
  readonly joins: SqlText
  /** Ascending: best first. */
  readonly rank: SqlText
  readonly visited: SqlText
}

export function createRankedMatches(
  call: TableCall,
  terms: readonly SearchTerm[],
  typoWords: TypoWords,
): RankedMatches {
  const each = terms.map((term) => matchesOf(call, term, typoWords))
  const [first] = each
  const found = first && each.length === 1 ? first.rows : intersect(each.map(({ rows }) => rows))
  return {
    joins: sql` JOIN (${found}) AS "_found" ON "_found"."key" = ${call.rows.key}`,
    rank: sql`"_found".value DESC`,
    visited: unionOf(each.flatMap(({ visited }) => visited)),
  }
}

/** Rows that occur in each of the queries, which have every row once. */
const intersect = (each: readonly SqlText[]): SqlText =>
  sql`SELECT "key", sum(value) AS value FROM (${unionOf(each)}) AS "_each" GROUP BY "key" HAVING count(*) = ${each.length}`

function unionOf(queries: readonly SqlText[]): SqlText {
  return { text: queries.map(({ text }) => text).join(' UNION ALL '), values: queries.flatMap(({ values }) => values) }
}

/** The rows that a term matches, each once. */
function matchesOf(call: TableCall, term: SearchTerm, typoWords: TypoWords): Matches {
  if (term.kind === 'unspaced') return partMatches(call, term.points, unspacedPartChars)
  const all = wordMatches(call, term, typoWords)
  const [only] = all
  if (only && all.length === 1 && !term.isPrefix) return only
  const rows = sql`SELECT "key", max(value) AS value FROM (${unionOf(all.map((one) => one.rows))}) AS "_any" GROUP BY "key"`
  return { rows, visited: all.flatMap(({ visited }) => visited) }
}

const aliasOfTerms = ident('_term')

/** The rows with terms of which a condition is true. */
function select({ database, table }: TableCall, value: SqlText, condition: (term: SqlText) => SqlText): Matches {
  const from = database.dialect.from(termTable(table), aliasOfTerms)
  const where = sql` FROM ${from} WHERE ${condition(sql`${aliasOfTerms}.term`)}`
  return {
    rows: sql`SELECT ${aliasOfTerms}."key" AS "key", ${aliasOfTerms}.weight + ${value} AS value${where}`,
    visited: [sql`SELECT ${aliasOfTerms}."key"${where}`],
  }
}

/** Constants are text of the statement: they are the same for all searches. */
const constant = (value: number): SqlText => ({ text: String(value), values: [] })

function wordMatches(call: TableCall, term: Extract<SearchTerm, { kind: 'word' }>, typoWords: TypoWords): Matches[] {
  const { folded, points, isPrefix, isPart } = term
  const { dialect } = call.database
  const value = isPrefix
    ? sql`CASE WHEN ${aliasOfTerms}.term = ${folded} THEN ${constant(quality.word)} ELSE ${constant(quality.prefix)} END`
    : constant(quality.word)
  const matches = [
    select(call, value, (column) =>
      isPrefix ? sql`${column} >= ${folded} AND ${column} < ${folded + lastCharacter}` : sql`${column} = ${folded}`,
    ),
  ]
  const [one = [], two = []] = typoWords.get(term) ?? []
  const isIn = (words: readonly string[]) => (column: SqlText) => dialect.inList(column, words, 'text')
  if (one.length > 0) matches.push(select(call, constant(quality.typo), isIn(one)))
  if (two.length > 0) matches.push(select(call, constant(quality.typos), isIn(two)))
  if (isPart) matches.push(partMatches(call, points, wordPartChars))
  return matches
}

/**
 * Rows with a word that contains the text, or a text without spaces that does. The index has parts of `chars`
 * characters; a longer text is compared with the terms of the rows that have several of its parts.
 */
function partMatches(call: TableCall, points: readonly string[], chars: number): Matches {
  const isWord = chars === wordPartChars
  const best = constant(isWord ? quality.part : quality.word)
  const hasTerm = (part: string) => (column: SqlText) => sql`${column} = ${isWord ? wordPart(part) : part}`
  if (points.length <= chars) return select(call, best, hasTerm(points.join('')))
  const { dialect } = call.database
  const parts = spread([...new Set(partsOf(points, chars))], partsLookedUpMax)
  const visited = parts.flatMap((part) => select(call, best, hasTerm(part)).visited)
  const row = ident('_row')
  const key = sql`${row}.${dialect.rowKey ?? ident('id')}`
  const { from, term, weight } = dialect.termIndex.entries(sql`${row}.${termsColumn}`)
  const value = sql`SELECT max(${weight}) + ${best} FROM ${from} WHERE ${dialect.contains(term, points.join(''))}`
  const isCandidate = join(
    visited.map((candidates) => sql`${key} IN (${candidates})`),
    ' AND ',
  )
  const candidates = sql`SELECT ${key} AS "key", (${value}) AS value FROM ${dialect.from(call.table, row)} WHERE ${isCandidate}`
  return { rows: sql`SELECT "key", value FROM (${candidates}) AS "_part" WHERE value IS NOT NULL`, visited }
}

/** At most `most` of the items, spread over all of them, the first and the last included. */
function spread<Item>(items: readonly Item[], most: number): readonly Item[] {
  if (items.length <= most) return items
  return Array.from({ length: most }, (_, at) => items[Math.round((at * (items.length - 1)) / (most - 1))] as Item)
}
