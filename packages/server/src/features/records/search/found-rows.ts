/** The rows that a search finds as a condition, for what concerns all of them: bulk jobs and exports. */
import { join, type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { accessDenied, invalidField } from '../../../errors.ts'
import { foundRowsCountedMs } from '../../../limits/writes.ts'
import { isNever } from '../../../query/expr.ts'
import { scanRows } from '../reads/scan.ts'
import { readScopeOf, type TableCall } from '../resolve-table.ts'
import { parseSearch } from './parse-search.ts'

export interface FoundRows {
  /** True of the rows that the search finds. */
  readonly condition: SqlText
  /** Selects the rows that a statement with the condition visits; see `PageQuery`. */
  readonly visited: SqlText | null
}

const none: FoundRows = { condition: sql`1 = 0`, visited: null }

/**
 * The rows that the words find. Throws 400 for words that no search accepts, and 403 for a caller who may not read: the
 * outcome reveals values.
 */
export async function findRows(call: TableCall, words: string): Promise<FoundRows> {
  const { permissions, table, rows } = call
  if (isNever(permissions.read())) throw accessDenied(`A search requires the scope ${readScopeOf(table.name)}`)
  const search = parseSearch(call, words)
  if (search.isEmpty) return none
  const { joins, conditions } = await search.find()
  const where = conditions.length === 0 ? sql`` : sql` WHERE ${join(conditions, ' AND ')}`
  // A statement of its own, so that rows can be locked where the search groups its matches.
  const found = sql`SELECT ${rows.name}."id" FROM ${rows.from}${joins}${where}`
  return { condition: sql`${rows.name}."id" IN (${found})`, visited: found }
}

/**
 * The same for what selects page after page by it: each page searches again, so that its cost is bounded by the number
 * of matches, with or without a filter. Throws 400 where they are more than `max`, and `query-timeout`.
 */
export async function findFewRows(call: TableCall, words: string, max: number): Promise<FoundRows> {
  const found = await findRows(call, words)
  if (found.visited === null) return found
  const some = sql`SELECT count(*) AS "count" FROM (${found.visited} LIMIT ${max + 1}) AS "_some"`
  const [row] = await scanRows<{ count: number }>(call, some, foundRowsCountedMs)
  if (Number(row?.count) > max)
    throw invalidField('q', 'max', `finds more than ${max} records; search for more words, or use a filter instead`)
  return found
}
