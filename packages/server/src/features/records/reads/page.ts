/** Pages of a table: their query, and the two ways of reading them, in one step or outside the event loop. */
import { callerKey } from '../../../access/caller.ts'
import type { EncodedRow } from '../../../engines/sql/encoded-rows.ts'
import type { PageQuery, PageRows } from '../../../engines/sql/page-query.ts'
import { join, type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import type { Reply } from '../../../http/endpoint.ts'
import { itemBytesMax, type ResponseLimits } from '../../../http/replies/large-responses.ts'
import { type Expr, isAlways } from '../../../query/expr.ts'
import type { TableCall } from '../resolve-table.ts'
import type { RecordRow } from '../rows.ts'
import type { RowReader } from './row-reader.ts'

/** Reads a page, up to `bytesMax`; null if it is too large to be read in one step. */
export type ReadPage<Row = RecordRow> = (query: PageQuery, bytesMax?: number) => Promise<PageRows<Row> | null>

/** The same with rows as the engine received them. */
export type ReadEncodedPage = (query: PageQuery) => Promise<PageRows<EncodedRow> | null>

/** Builds a response from pages; null if they are too large to be read in one step, which `isLarge` does not. */
export type Respond = (read: ReadPage, isLarge: boolean) => Promise<Reply | null>

/**
 * Responds with pages read in one step, or, if they are too large, read and serialized outside the event loop.
 * `encode` is given for items that have the columns of their rows and nothing else.
 */
export async function respondWithPage(
  { database, caller }: TableCall,
  limits: ResponseLimits,
  respond: Respond,
  encode: ((read: ReadEncodedPage) => Promise<Reply | null>) | null = null,
): Promise<Reply> {
  const { readEncodedPage } = database
  const quick = await (encode && readEncodedPage
    ? encode(readEncodedPage)
    : respond((query) => database.readPage(query), false))
  if (quick) return quick
  const most = itemBytesMax(limits.bytesMax())
  const read: ReadPage = (query, bytesMax = most) => database.readLargePage(query, bytesMax)
  const large = await limits.large(caller, () => respond(read, true))
  if (!large) throw new Error('A large page was not read')
  return large
}

/** The condition as SQL; none for one that is true of every row. */
export const conditionsOf = (call: TableCall, condition: Expr): SqlText[] =>
  isAlways(condition) ? [] : [call.backEnd.condition(condition, call.table)]

/** The query of a page of the table. */
export const pageQuery = (
  { rows, caller }: TableCall,
  { list, key, keyChars }: Pick<RowReader, 'list' | 'key' | 'keyChars'>,
  conditions: readonly SqlText[],
  {
    joins = nothing,
    order,
    limit,
    offset,
    visited = null,
    scalar,
    onRead,
  }: Pick<PageQuery, 'order' | 'limit' | 'offset' | 'visited' | 'scalar' | 'onRead'> & { readonly joins?: SqlText },
): PageQuery => {
  const where = conditions.length === 0 ? nothing : sql` WHERE ${join(conditions, ' AND ')}`
  const source = sql` FROM ${rows.from}${joins}${where}`
  return { list, source, order, limit, offset, key, keyChars, visited, caller: callerKey(caller), scalar, onRead }
}

const nothing = sql``
