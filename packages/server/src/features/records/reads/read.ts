/** Get, count, and the parameters that all lists share. Every SQL query includes the caller's read rule. */
import { required } from '../../../access/check.ts'
import type { SqlText } from '../../../engines/sql/sql-text.ts'
import { badRequest, invalidField, notFound } from '../../../errors.ts'
import type { Reply } from '../../../http/endpoint.ts'
import type { ResponseLimits } from '../../../http/replies/large-responses.ts'
import { listLimitDefault } from '../../../limits/api.ts'
import { allOf } from '../../../query/expr.ts'
import { type FilterGroups, parseFields, parseFilterTexts } from '../../../query/filter.ts'
import type { TableCall } from '../resolve-table.ts'
import type { RecordRow } from '../rows.ts'
import type { Totals } from '../totals/totals.ts'
import { takeVersion } from '../version.ts'
import { isRecordId } from '../writes/input.ts'
import { recordWithIncluded } from './include/included-replies.ts'
import { includingReader, parseInclude } from './include/parse-include.ts'
import { conditionsOf } from './page.ts'
import { recordReply } from './page-reply.ts'
import { type RowReader, readerOf } from './row-reader.ts'

/** Query parameters of a list; undefined where absent. `limit` and `perPage` are at most `listLimitMax`. */
export interface ListQuery extends FilterGroups<string> {
  readonly sort?: string | undefined
  readonly fields?: string | undefined
  readonly include?: string | undefined
  readonly limit?: number | undefined
  readonly page?: number | undefined
  readonly perPage?: number | undefined
  readonly offset?: number | undefined
  readonly after?: string | undefined
  readonly before?: string | undefined
  /** Whether the response has the versions of its items. */
  readonly versions?: boolean | undefined
  /** Characters to which the response cuts values. */
  readonly preview?: number | undefined
  /** Whether the response has the check of the list for a transaction. */
  readonly check?: boolean | undefined
}

export interface Window {
  readonly limit: number
  readonly offset: number
  readonly page: number
}

/** The window selected by `limit`, `page`, `perPage` and `offset`. Throws 400 for an invalid combination. */
export function windowOf(query: Pick<ListQuery, 'limit' | 'page' | 'perPage' | 'offset'>): Window {
  const { limit, perPage, page, offset } = query
  if (page !== undefined && offset !== undefined) throw badRequest('Use either page or offset, not both')
  const wanted = page === undefined ? (limit ?? perPage) : (perPage ?? limit)
  const used = wanted ?? listLimitDefault
  const start = page === undefined ? (offset ?? 0) : (page - 1) * used
  if (!Number.isSafeInteger(start)) throw invalidField('page', 'max', 'is too large')
  return { limit: used, offset: start, page: page ?? Math.floor(start / used) + 1 }
}

/** A record if the caller may read it, with all fields or those given. */
export async function findRecord(
  call: TableCall,
  id: string,
  fields: ReadonlySet<string> | null = null,
): Promise<RecordRow | null> {
  if (!isRecordId(id)) return null
  const reader = readerOf(call, fields)
  const [row] = await call.database.all<RecordRow>(rowQuery(call, id, reader))
  if (!row) return null
  takeVersion(row)
  return reader.record(row)
}

/** Selects the row with an id if the caller may read it. */
function rowQuery(call: TableCall, id: string, reader: RowReader): SqlText {
  const [rule] = conditionsOf(call, call.permissions.read())
  return reader.byId(id, rule)
}

/**
 * Responds with one record, or the requested fields of it, and its related records. Throws 404 if it does not exist or
 * the rule hides it.
 */
export async function get(
  call: TableCall,
  id: string,
  { fields: fieldsText, include }: Pick<ListQuery, 'fields' | 'include'>,
  limits: ResponseLimits,
): Promise<Reply> {
  required(call.permissions.read(), call.caller)
  const included = parseInclude(call, include)
  const reader = includingReader(call, fieldsText === undefined ? null : parseFields(call.view, fieldsText), included)
  if (!isRecordId(id)) throw notFound('Record')
  const [row] = await call.database.all<RecordRow>(rowQuery(call, id, reader))
  if (!row) throw notFound('Record')
  const version = takeVersion(row)
  if (included.length > 0) return recordWithIncluded({ call, reader, included }, row, version, limits)
  return recordReply(row, version, { record: reader.record, item: reader.show, text: reader.json })
}

/** Counts the matching rows that the caller may read. */
export async function count(
  call: TableCall,
  query: FilterGroups<string>,
  totals: Pick<Totals, 'count'>,
): Promise<{ total: number }> {
  const allowed = required(call.permissions.read(), call.caller)
  const condition = allOf([allowed, parseFilterTexts(call.view, query).condition])
  return { total: await totals.count(call, condition) }
}
