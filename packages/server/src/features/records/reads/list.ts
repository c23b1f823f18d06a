/**
 * Lists in both paging modes. A page that would exceed the maximum response size ends early, with `truncated: true` and
 * the cursor of the next page.
 */

import { required } from '../../../access/check.ts'
import { currentTrace } from '../../../base/tracing/request-trace.ts'
import type { PageQuery, ReadRows } from '../../../engines/sql/page-query.ts'
import { type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { badRequest, invalidField } from '../../../errors.ts'
import type { Reply } from '../../../http/endpoint.ts'
import type { ResponseLimits } from '../../../http/replies/large-responses.ts'
import { cursorCharsMax, quickResponseBytes } from '../../../limits/api.ts'
import {
  type CursorDirection,
  formatCursor,
  isCursor,
  orderBy,
  parseCursor,
  segmentsAfter,
} from '../../../query/cursor.ts'
import { allOf, type Expr, isAlways } from '../../../query/expr.ts'
import { parseFields, parseFilterTexts } from '../../../query/filter.ts'
import type { Nearby } from '../../../query/geo/nearby.ts'
import { parseSort, reverseSort, type Sort, type SortValue, sortValues } from '../../../query/sort.ts'
import type { ReadSamples } from '../advice/read-samples.ts'
import type { TableCall } from '../resolve-table.ts'
import type { RecordRow, TableRows } from '../rows.ts'
import type { FoundRows } from '../search/found-rows.ts'
import type { Totals } from '../totals/totals.ts'
import { isRecordId } from '../writes/input.ts'
import { scansTable } from './explain/suggest-index.ts'
import { pageWithIncluded } from './include/included-replies.ts'
import { type Included, includingReader, parseInclude } from './include/parse-include.ts'
import { measured } from './measured.ts'
import { readNearest } from './nearest.ts'
import { conditionsOf, pageQuery, type ReadEncodedPage, type ReadPage, type Respond, respondWithPage } from './page.ts'
import {
  type CheckedList,
  type EncodedPageWriter,
  encodedReply,
  type ListEnvelope,
  type PageWriter,
  pageReply,
} from './page-reply.ts'
import { requirePreviewScope } from './preview.ts'
import { findRecord, type ListQuery, type Window, windowOf } from './read.ts'
import type { RowReader } from './row-reader.ts'

interface Selection {
  readonly condition: Expr
  readonly sort: Sort
  /** The fields that cursors and distances are made of. */
  readonly keys: readonly string[]
  readonly reader: RowReader
  /** Where the response has a check for a transaction. */
  readonly checked: CheckedList | null
  readonly included: readonly Included[]
  readonly nearby: Nearby
}

export interface ListDeps {
  readonly totals: Totals
  readonly limits: ResponseLimits
  /** Keeps the forms of lists in sampled requests; absent for rehearsals. */
  readonly samples?: Pick<ReadSamples, 'add'>
  /** Restricts a list from a cursor to these rows. */
  readonly found?: FoundRows | null
  /** See `Call`. */
  readonly admit?: (() => Promise<void> | undefined) | undefined
}

function parseSelection(call: TableCall, query: ListQuery): Selection {
  const allowed = required(call.permissions.read(), call.caller)
  const { condition: filter, nearby } = parseFilterTexts(call.view, query)
  const condition = allOf([allowed, filter])
  const sort = parseSort(call.view, query.sort, nearby)
  const fields = query.fields === undefined ? null : parseFields(call.view, query.fields)
  const keys = [...sort.map(({ field }) => field), ...nearby.keys()]
  const checked = query.check ? checkedList(query) : null
  const included = parseInclude(call, query.include)
  requirePreviewScope(call, query.preview)
  const versions = query.versions || query.check
  const reader = includingReader(call, fields, included, { keys, versions, previewChars: query.preview })
  return { condition, sort, keys, reader, checked, included, nearby }
}

/** Room for the digest and the names in a check. */
const checkBytes = 128

/** Throws 400 for a list that does not begin at its start. */
function checkedList(query: ListQuery): CheckedList {
  if (query.before !== undefined || query.after || (query.page ?? 1) > 1 || (query.offset ?? 0) > 0)
    throw badRequest('check applies to a list from its start')
  if (query.include !== undefined) throw badRequest('check does not cover related records; leave out include')
  const [filter, orFilter] = [query.filter ?? query.filters, query.orFilter ?? query.orFilters].map((text) =>
    text === undefined ? undefined : JSON.parse(text),
  )
  const list = { filter, orFilter, sort: query.sort, limit: windowOf(query).limit }
  return { list, bytes: JSON.stringify(list).length * 3 + checkBytes }
}

const isFiltered = ({ filter, filters, orFilter, orFilters }: ListQuery): boolean =>
  (filter ?? filters ?? orFilter ?? orFilters) !== undefined

/**
 * Lists in the paging mode that the parameters select. Throws 400 naming the parameter, 401/403 if the read rule denies
 * every row. A list that no index serves waits for its admission.
 */
export function list(call: TableCall, query: ListQuery, deps: ListDeps): Promise<Reply> {
  const byCursor = query.after !== undefined || query.before !== undefined
  if (byCursor && (query.page !== undefined || query.offset !== undefined))
    throw badRequest('page and offset cannot be combined with after and before')
  if (query.after !== undefined && query.before !== undefined) throw badRequest('after cannot be combined with before')
  const selection = parseSelection(call, query)
  if (currentTrace()) deps.samples?.add(call, selection.condition, selection.sort)
  const window = windowOf(query)
  const read = (): Promise<Reply> => {
    // A check does not cover the total.
    if (selection.checked) return listFrom(call, selection, window.limit, 'after', '', deps)
    if (query.after !== undefined) return listFrom(call, selection, window.limit, 'after', query.after, deps)
    if (query.before !== undefined) return listFrom(call, selection, window.limit, 'before', query.before, deps)
    return listPage(call, selection, window, deps)
  }
  const admitted = scansTable(call.table, selection, isFiltered(query)) ? deps.admit?.() : undefined
  return admitted ? admitted.then(read) : read()
}

const orders = new WeakMap<TableRows, WeakMap<Sort, SqlText>>()

/** Built once per sort: equal texts have the same. */
function orderOf({ backEnd, table, rows }: TableCall, sort: Sort): SqlText {
  const known = orders.get(rows) ?? new WeakMap<Sort, SqlText>()
  orders.set(rows, known)
  const order = known.get(sort) ?? sql` ORDER BY ${orderBy(backEnd, table, sort)}`
  known.set(sort, order)
  return order
}

function listPage(call: TableCall, selection: Selection, window: Window, { totals, limits }: ListDeps): Promise<Reply> {
  const { condition, sort, reader } = selection
  const { limit, offset, page } = window
  const order = orderOf(call, sort)
  const where = call.backEnd.condition(condition, call.table)
  const queryOf = (one: Expr, scalar: PageQuery['scalar'], onRead: PageQuery['onRead']): PageQuery => {
    const conditions = isAlways(one) ? [] : [one === condition ? where : call.backEnd.condition(one, call.table)]
    const visited = call.backEnd.visited(one, call.table)
    return pageQuery(call, reader, conditions, { order, limit, offset, visited, scalar, onRead })
  }
  const nearest = { table: call.table, condition, sort, position: null, limit }
  const writerWith = (total: number): EncodedPageWriter =>
    writerOf(
      selection,
      (_: number, last: RecordRow | null, truncated: boolean): ListEnvelope => {
        const fields = { total, page, perPage: limit, hasMore: null, cursor: null }
        return truncated && last ? { ...fields, cursor: cursorOf(call, sort, 'after', last), truncated } : fields
      },
      { isReversed: false, checked: null, lastFields: [] },
    )
  return respondWithList(call, selection, limits, async <Row>(read: ReadPage<Row>, write: WritePage<Row>) => {
    for (let attempt = 0; ; attempt++) {
      const { scalar, onRead: totalOnRead, find } = totals.atPage(call, { expr: condition, where }, attempt)
      let reply: Written | null = null
      const onRead = (page: ReadRows<unknown>): void => {
        const total = totalOnRead?.() ?? null
        if (total !== null && isWrittenAtOnce(selection, page)) reply = write(page as ReadRows<Row>, writerWith(total))
      }
      const found = await readNearest(nearest, (one) => read(queryOf(one, scalar, totalOnRead && onRead)))
      if (reply || !found) return reply
      const total = await find(found.scalar)
      if (total !== null) return write(found, writerWith(total))
    }
  })
}

/** Whether a page is written in the tick that reads it, while its rows are in the processor's caches. */
const isWrittenAtOnce = ({ included, nearby }: Selection, { bytes }: ReadRows<unknown>): boolean =>
  included.length === 0 && nearby.size === 0 && bytes <= quickResponseBytes

/** A response; null if something of it is too large to be read in one step. */
type Written = Reply | Promise<Reply | null>

type WritePage<Row> = (found: ReadRows<Row>, writer: EncodedPageWriter) => Written

/** Reads the rows of the response and writes it. */
type ReadList = <Row>(read: ReadPage<Row>, write: WritePage<Row>) => Promise<Reply | null>

function respondWithList(
  call: TableCall,
  { reader, included, nearby }: Selection,
  limits: ResponseLimits,
  readList: ReadList,
): Promise<Reply> {
  const respond: Respond = (read, isLarge) =>
    readList(read, (found: ReadRows<RecordRow>, writer) =>
      included.length === 0
        ? pageReply(found, writer, limits)
        : pageWithIncluded({ call, reader, included }, found, writer, { read, isLarge, limits }),
    )
  const encode = (read: ReadEncodedPage): Promise<Reply | null> =>
    readList(read, (found, writer) => encodedReply(found, writer, limits))
  const isEncodable = reader.isEncodable && included.length === 0 && nearby.size === 0
  return respondWithPage(call, limits, respond, isEncodable ? encode : null)
}

const writerOf = (
  { reader, nearby }: Pick<Selection, 'reader' | 'nearby'>,
  envelope: PageWriter['envelope'],
  more: Pick<EncodedPageWriter, 'isReversed' | 'checked' | 'lastFields'>,
): EncodedPageWriter => ({
  takeVersion: reader.takeVersion,
  record: reader.record,
  ...measured({ item: reader.show, text: reader.json }, reader, nearby),
  envelope,
  ...more,
})

/** The position of a cursor parameter; null for the start or end. A record id stands for the record's position. */
async function findPosition(
  call: TableCall,
  sort: Sort,
  direction: CursorDirection,
  cursor: string,
): Promise<readonly SortValue[] | null> {
  if (cursor === '') return null
  if (isCursor(cursor)) return parseCursor({ table: call.table, sort, direction, seal: call.seal }, cursor)
  const fields = new Set(sort.map(({ field }) => field))
  const record = isRecordId(cursor) ? await findRecord(call, cursor, fields) : null
  if (!record) throw invalidField(direction, 'type', 'is neither a cursor nor the id of an existing record')
  return sortValues(sort, call.table, record)
}

/** The cursor of a record; the record's id if the cursor would be too long for a URL. */
function cursorOf(call: TableCall, sort: Sort, direction: CursorDirection, record: RecordRow): string {
  const cursor = formatCursor(
    { table: call.table, sort, direction, seal: call.seal },
    sortValues(sort, call.table, record),
  )
  return cursor.length > cursorCharsMax ? (record.id as string) : cursor
}

/** Concatenates the rows of the segments, `limit` at most; null if `read` returned null for one of them. */
async function readSegments<Row>(
  read: ReadPage<Row>,
  queries: readonly PageQuery[],
  limit: number,
): Promise<ReadRows<Row> | null> {
  const [first] = queries
  if (first && queries.length === 1) return read(first)
  const rows: Row[] = []
  let bytes = 0
  for (const query of queries) {
    if (rows.length === limit) break
    const page = await read({ ...query, limit: limit - rows.length })
    if (!page) return null
    rows.push(...page.rows)
    bytes += page.bytes
    if (page.isCut) return { rows, bytes, isCut: true }
  }
  return { rows, bytes, isCut: false }
}

async function listFrom(
  call: TableCall,
  selection: Selection,
  limit: number,
  direction: CursorDirection,
  cursor: string,
  { limits, found = null }: ListDeps,
): Promise<Reply> {
  const { condition, sort, keys, reader, checked } = selection
  const position = await findPosition(call, sort, direction, cursor)
  // To page backward, page forward in reverse order and reverse the page.
  const walk = direction === 'after' ? sort : reverseSort(sort)
  const segments = position ? segmentsAfter(call.backEnd, call.table, walk, position) : [null]
  const order = orderOf(call, walk)
  const queriesOf = (one: Expr, onRead: PageQuery['onRead']): readonly PageQuery[] => {
    const conditions = [...(found ? [found.condition] : []), ...conditionsOf(call, one)]
    const visited = found ? found.visited : call.backEnd.visited(one, call.table)
    return segments.map((segment) =>
      pageQuery(call, reader, segment ? [...conditions, segment] : conditions, {
        order,
        limit: limit + 1,
        offset: 0,
        visited,
        onRead: segments.length === 1 ? onRead : undefined,
      }),
    )
  }
  // One extra row shows whether there are more.
  const nearest = { table: call.table, condition, sort: walk, position, limit: limit + 1 }
  const takeRest = ({ rows }: ReadRows<unknown>): EncodedPageWriter => {
    const hasMore = rows.length > limit
    if (hasMore) rows.pop()
    const envelope = (_: number, last: RecordRow | null, truncated: boolean): ListEnvelope => {
      const next = last ? cursorOf(call, sort, direction, last) : cursor
      const rest = { total: null, page: null, perPage: null, hasMore: hasMore || truncated, cursor: next }
      return truncated ? { ...rest, truncated } : rest
    }
    return writerOf(selection, envelope, { isReversed: direction === 'before', checked, lastFields: keys })
  }
  return respondWithList(call, selection, limits, async <Row>(read: ReadPage<Row>, write: WritePage<Row>) => {
    let reply: Written | null = null
    const onRead = (page: ReadRows<unknown>): void => {
      if (isWrittenAtOnce(selection, page)) reply = write(page as ReadRows<Row>, takeRest(page))
    }
    const found = await readNearest(nearest, (one) => readSegments(read, queriesOf(one, onRead), limit + 1))
    return reply ?? (found && write(found, takeRest(found)))
  })
}
