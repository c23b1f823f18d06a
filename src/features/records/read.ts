/**
 * Reading records: get, list in both paging modes, count. Every query is restricted by the caller's read rule inside
 * the SQL.
 */
import { required } from '../../access/check.ts'
import { join, type SqlText, sql } from '../../engines/sql-text.ts'
import { badRequest, invalidField, notFound } from '../../errors.ts'
import { cursorCharsMax, listLimitDefault, listLimitMax } from '../../limits.ts'
import {
  type CursorDirection,
  formatCursor,
  isCursor,
  orderBy,
  parseCursor,
  segmentsAfter,
} from '../../query/cursor.ts'
import { allOf, type Expr } from '../../query/expr.ts'
import { parseFields, parseFilterTexts } from '../../query/filter.ts'
import { parseSort, reverseSort, type Sort, type SortValue, sortValues } from '../../query/sort.ts'
import { isRecordId } from './input.ts'
import type { RecordRow } from './rows.ts'
import type { TableCall } from './tables.ts'
import type { Totals } from './totals.ts'

/** Query parameters of a list as they were sent; undefined where absent. */
export interface ListQuery {
  readonly filter?: string | undefined
  readonly orFilter?: string | undefined
  readonly sort?: string | undefined
  readonly fields?: string | undefined
  readonly limit?: string | undefined
  readonly page?: string | undefined
  readonly perPage?: string | undefined
  readonly offset?: string | undefined
  readonly after?: string | undefined
  readonly before?: string | undefined
}

export interface ListPage {
  readonly items: readonly RecordRow[]
  readonly total: number | null
  readonly page: number | null
  readonly perPage: number | null
  readonly hasMore: boolean | null
  readonly cursor: string | null
}

const wholeNumberPattern = /^-?\d{1,16}$/

/** A whole number of at least `min`, or undefined where the parameter is absent. Throws 400 naming it. */
function parseWhole(name: string, text: string | undefined, min: number): number | undefined {
  if (text === undefined) return undefined
  const value = wholeNumberPattern.test(text) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(value)) throw invalidField(name, 'type', 'must be a whole number')
  if (value < min) throw invalidField(name, 'min', `must be at least ${min}`)
  return value
}

export interface Window {
  readonly limit: number
  readonly offset: number
  readonly page: number
}

/**
 * The slice that `limit`, `page`, `perPage` and `offset` ask for; the limit is clamped to `listLimitMax`. Throws 400.
 */
export function parseWindow(query: Pick<ListQuery, 'limit' | 'page' | 'perPage' | 'offset'>): Window {
  const limit = parseWhole('limit', query.limit, 1)
  const perPage = parseWhole('perPage', query.perPage, 1)
  const page = parseWhole('page', query.page, 1)
  const offset = parseWhole('offset', query.offset, 0)
  if (page !== undefined && offset !== undefined) throw badRequest('Use either page or offset, not both')
  const wanted = page === undefined ? (limit ?? perPage) : (perPage ?? limit)
  const used = Math.min(wanted ?? listLimitDefault, listLimitMax)
  const start = page === undefined ? (offset ?? 0) : (page - 1) * used
  if (!Number.isSafeInteger(start)) throw invalidField('page', 'max', 'is too large')
  return { limit: used, offset: start, page: page ?? Math.floor(start / used) + 1 }
}

interface Selection {
  readonly condition: Expr
  readonly sort: Sort
  /** Null for all fields. */
  readonly fields: ReadonlySet<string> | null
}

function parseSelection(call: TableCall, query: ListQuery): Selection {
  const allowed = required(call.permissions.read(), call.caller)
  return {
    condition: allOf([allowed, parseFilterTexts(call.view, query)]),
    sort: parseSort(call.view, query.sort),
    fields: query.fields === undefined ? null : parseFields(call.view, query.fields),
  }
}

/** Those fields of a record that were asked for; null for all of them. */
export const project = (record: RecordRow, fields: ReadonlySet<string> | null): RecordRow => {
  if (!fields) return record
  const shown: RecordRow = {}
  for (const name of Object.keys(record)) if (fields.has(name)) shown[name] = record[name]
  return shown
}

interface Slice {
  readonly conditions: readonly SqlText[]
  readonly sort: Sort
  readonly limit: number
  readonly offset?: number
}

async function select(call: TableCall, { conditions, sort, limit, offset = 0 }: Slice): Promise<RecordRow[]> {
  const { rows, view, backEnd, table } = call
  const where = conditions.length === 0 ? sql`` : sql` WHERE ${join(conditions, ' AND ')}`
  const skip = offset === 0 ? sql`` : sql` OFFSET ${offset}`
  const found = await call.database.all<RecordRow>(
    sql`SELECT ${rows.columns(view.showsHidden)} FROM ${rows.from}${where} ORDER BY ${orderBy(backEnd, table, sort)} LIMIT ${limit}${skip}`,
  )
  return found.map(rows.fromSql)
}

const conditionsOf = (call: TableCall, condition: Expr): SqlText[] =>
  condition.kind === 'const' && condition.value ? [] : [call.backEnd.condition(condition, call.table)]

/**
 * A list in the mode its parameters choose. Throws 400 naming the parameter, 401/403 where the read rule denies
 * whatever the row.
 */
export function list(call: TableCall, query: ListQuery, totals: Totals): Promise<ListPage> {
  const byCursor = query.after !== undefined || query.before !== undefined
  if (byCursor && (query.page !== undefined || query.offset !== undefined))
    throw badRequest('page and offset cannot be combined with after and before')
  if (query.after !== undefined && query.before !== undefined) throw badRequest('after cannot be combined with before')
  const selection = parseSelection(call, query)
  const window = parseWindow(query)
  if (query.after !== undefined) return listFrom(call, selection, window.limit, 'after', query.after)
  if (query.before !== undefined) return listFrom(call, selection, window.limit, 'before', query.before)
  return listPage(call, selection, window, totals)
}

async function listPage(call: TableCall, selection: Selection, window: Window, totals: Totals): Promise<ListPage> {
  const { condition, sort, fields } = selection
  const { limit, offset, page } = window
  const items = await select(call, { conditions: conditionsOf(call, condition), sort, limit, offset })
  const total = await totals.count(call, condition)
  return { items: items.map((item) => project(item, fields)), total, page, perPage: limit, hasMore: null, cursor: null }
}

/**
 * The place a cursor parameter stands for; null for the very start or end. A plain record id means that record's place.
 */
async function findPlace(
  call: TableCall,
  sort: Sort,
  direction: CursorDirection,
  cursor: string,
): Promise<readonly SortValue[] | null> {
  if (cursor === '') return null
  if (isCursor(cursor)) return parseCursor({ table: call.table, sort, direction, seal: call.seal }, cursor)
  const record = isRecordId(cursor) ? await findRecord(call, cursor) : null
  if (!record) throw invalidField(direction, 'type', 'is neither a cursor nor the id of a record')
  return sortValues(sort, call.table, record)
}

/** The place of a record as a cursor; by its id where the place is too long for a URL. */
function cursorOf(call: TableCall, sort: Sort, direction: CursorDirection, record: RecordRow): string {
  const cursor = formatCursor(
    { table: call.table, sort, direction, seal: call.seal },
    sortValues(sort, call.table, record),
  )
  return cursor.length > cursorCharsMax ? (record.id as string) : cursor
}

async function listFrom(
  call: TableCall,
  selection: Selection,
  limit: number,
  direction: CursorDirection,
  cursor: string,
): Promise<ListPage> {
  const { condition, sort, fields } = selection
  const place = await findPlace(call, sort, direction, cursor)
  // Going back is going forward in the opposite order, and turning the page round.
  const walk = direction === 'after' ? sort : reverseSort(sort)
  const segments = place ? segmentsAfter(call.backEnd, call.table, walk, place) : [null]
  const found: RecordRow[] = []
  for (const segment of segments) {
    // One row more than asked for tells whether there are more.
    const wanted = limit + 1 - found.length
    if (wanted === 0) break
    const conditions = conditionsOf(call, condition)
    if (segment) conditions.push(segment)
    found.push(...(await select(call, { conditions, sort: walk, limit: wanted })))
  }
  const hasMore = found.length > limit
  if (hasMore) found.pop()
  const last = found.at(-1)
  const next = last ? cursorOf(call, sort, direction, last) : cursor
  if (direction === 'before') found.reverse()
  return {
    items: found.map((item) => project(item, fields)),
    total: null,
    page: null,
    perPage: null,
    hasMore,
    cursor: next,
  }
}

/** The record if the caller may read it. */
export async function findRecord(call: TableCall, id: string): Promise<RecordRow | null> {
  if (!isRecordId(id)) return null
  const { rows, view } = call
  const byId = rows.selectById(id, view.showsHidden)
  const [rule] = conditionsOf(call, call.permissions.read())
  const [row] = await call.database.all<RecordRow>(rule ? sql`${byId} AND ${rule}` : byId)
  return row ? rows.fromSql(row) : null
}

/**
 * One record, or those of its fields that were asked for. Throws 404 for a row that does not exist or that the rule
 * hides.
 */
export async function get(call: TableCall, id: string, fieldsText: string | undefined): Promise<RecordRow> {
  required(call.permissions.read(), call.caller)
  const fields = fieldsText === undefined ? null : parseFields(call.view, fieldsText)
  const record = await findRecord(call, id)
  if (!record) throw notFound('Record')
  return project(record, fields)
}

/** How many rows the caller may read match. */
export async function count(
  call: TableCall,
  query: Pick<ListQuery, 'filter' | 'orFilter'>,
  totals: Totals,
): Promise<{ total: number }> {
  const allowed = required(call.permissions.read(), call.caller)
  const condition = allOf([allowed, parseFilterTexts(call.view, query)])
  return { total: await totals.count(call, condition) }
}
