/**
 * The text of a search, as the table takes it: words for the full-text index of the engine, or terms where the table
 * has a ranking.
 */
import type { PageQuery } from '../../../engines/sql/page-query.ts'
import { ident, type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { badRequest, invalidField } from '../../../errors.ts'
import type { Ranking } from '../../../query/table.ts'
import type { TableCall } from '../resolve-table.ts'
import { createHighlighter, type Highlighter } from './highlight.ts'
import { createRankedHighlighter } from './ranked-highlight.ts'
import { createRankedMatches } from './ranked-matches.ts'
import { parseSearchTerms } from './search-terms.ts'
import { weightedFields } from './terms.ts'
import { findTypoWords } from './typo-words.ts'
import { parseSearchWords } from './words.ts'

/** The rows that a search finds, for a statement that selects from the table. */
export interface Found {
  readonly joins: SqlText
  readonly conditions: readonly SqlText[]
  /** ` ORDER BY …`, best first. */
  readonly order: SqlText
  /** What it costs to find them. */
  readonly hints: Pick<PageQuery, 'frequency' | 'visited'>
}

export interface ParsedSearch {
  /** Whether the text has no words, such as "?!", and finds nothing. */
  readonly isEmpty: boolean
  createHighlighter(pre: string, post: string): Highlighter
  /** May read the index. Throws `query-timeout`. */
  find(): Promise<Found>
}

/** Throws 400 for a missing `q`, too many words, or a table without search. */
export function parseSearch(call: TableCall, q: string | undefined): ParsedSearch {
  const { table } = call
  if (table.search.length === 0) throw badRequest('Full-text search is not enabled for this table')
  if (q === undefined || q === '') throw invalidField('q', 'required', 'is required')
  return table.ranking ? parseRanked(call, q, table.ranking) : parsePlain(call, q)
}

function parsePlain({ table, database, rows }: TableCall, q: string): ParsedSearch {
  const words = parseSearchWords(q)
  return {
    isEmpty: words.length === 0,
    createHighlighter: (pre, post) => createHighlighter(words, pre, post),
    async find() {
      const { joins, matches, rank, frequency } = database.dialect.searchIndex(table, words)
      const order = sql` ORDER BY ${rank}, ${rows.name}."id"`
      return { joins, conditions: [matches], order, hints: { frequency } }
    },
  }
}

function parseRanked(call: TableCall, q: string, ranking: Ranking): ParsedSearch {
  const terms = parseSearchTerms(q, ranking)
  const [[weightiest = ''] = []] = weightedFields(call.table, ranking)
  return {
    isEmpty: terms.length === 0,
    createHighlighter: (pre, post) => createRankedHighlighter(terms, pre, post),
    async find() {
      const { joins, rank, visited } = createRankedMatches(call, terms, await findTypoWords(call, terms))
      const { name } = call.rows
      const chars = sql`length(coalesce(${name}.${ident(weightiest)}, ''))`
      return { joins, conditions: [], order: sql` ORDER BY ${rank}, ${chars}, ${name}."id"`, hints: { visited } }
    },
  }
}
