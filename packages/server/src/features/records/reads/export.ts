/**
 * The endpoint that exports the records of a table as a file: a stream of the pages of a list, each read when the
 * client has taken the one before.
 */
import { z } from '../../../base/schemas/z.ts'
import { type Call, type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { textParam } from '../../../http/input/query-schema.ts'
import { createResponseLimits } from '../../../http/replies/large-responses.ts'
import { bytes, textOf } from '../../../http/replies/reply.ts'
import { exportFoundMax, exportPageBytes, exportPageRecords } from '../../../limits/writes.ts'
import {
  createRecordWriter,
  type RecordFormat,
  type RecordWriter,
  recordFormats,
} from '../../../query/record-files/record-text.ts'
import type { Table } from '../../../query/table.ts'
import { maskedFilter } from '../hidden-values.ts'
import type { TableCall } from '../resolve-table.ts'
import { type FoundRows, findFewRows } from '../search/found-rows.ts'
import { common, type ResolveCall, readScope } from '../table-endpoint.ts'
import type { Totals } from '../totals/totals.ts'
import { filtering } from './endpoints.ts'
import { list } from './list.ts'

const exportQuery = z.object({
  format: z.enum(recordFormats).meta({ description: 'CSV has text that no spreadsheet runs as a formula' }),
  ...filtering,
  q: textParam(`Words of a full-text search with at most ${exportFoundMax} results; the filter applies too`),
  sort: textParam('field:asc or field:desc, comma-separated; default id:asc'),
  fields: textParam('Fields to export: name,title; default all but hidden ones'),
})
type Query = z.output<typeof exportQuery>

const contentTypes: Readonly<Record<RecordFormat, string>> = {
  csv: 'text/csv; charset=utf-8; header=present',
  ndjson: 'application/x-ndjson',
  json: 'application/json',
}

interface Page {
  readonly items: readonly Readonly<Record<string, unknown>>[]
  readonly hasMore: boolean
  readonly cursor: string | null
}

export interface ExportDeps {
  readonly resolve: ResolveCall
  readonly totals: Totals
}

const limits = createResponseLimits(() => exportPageBytes)

export function createExportEndpoint({ resolve, totals }: ExportDeps): Endpoint {
  async function readPage(table: TableCall, query: Query, found: FoundRows | null, after: string) {
    const { format: _, q: __, sort = 'id:asc', ...listed } = query
    const reply = await list(table, { ...listed, sort, after, limit: exportPageRecords }, { totals, limits, found })
    return JSON.parse(textOf(reply) ?? '') as Page
  }
  return endpoint({
    ...common,
    credentials: 'service',
    name: 'records.export',
    method: 'GET',
    paths: ['/api/db/:namespace/export/:table', '/api/db/:namespace/:instanceId/export/:table'],
    summary: 'Export records as a file',
    description:
      'Streams the records that match in pages, those of a search too in the order of `sort`: one that is written meanwhile is there or not. An export that fails breaks the connection. Administrators need a recent sign-in.',
    scope: readScope,
    requiresRecentSignIn: true,
    // Data leaves the server.
    changes: true,
    query: exportQuery,
    replies: { 200: { description: 'The file' } },
    errors: [404],
    async handle(call) {
      const table = await resolve(call)
      const { q } = call.query
      const found = q === undefined ? null : await findFewRows(table, q, exportFoundMax)
      const first = await readPage(table, call.query, found, '')
      call.audit?.({ before: null, after: audited(table.table, call.query) })
      const writer = writerOf(table.table, call.query)
      const next = (after: string) => readPage(table, call.query, found, after)
      const { format } = call.query
      return bytes({ kind: 'stream', stream: streamed(writer, first, next, call) }, 200, {
        'Content-Type': contentTypes[format],
        'Content-Disposition': `attachment; filename="${table.table.name}.${format}"`,
        'Cache-Control': 'no-store',
      })
    },
  })
}

function writerOf(table: Table, { format, fields }: Query): RecordWriter {
  const visible = [...table.fields.keys()].filter((name) => !table.hidden.has(name))
  const writer = createRecordWriter(format, table, fields?.split(',').map((name) => name.trim()) ?? visible)
  if (fields !== undefined || table.hidden.size === 0) return writer
  const shown = (item: Page['items'][number]) =>
    Object.fromEntries(Object.entries(item).filter(([name]) => !table.hidden.has(name)))
  return { ...writer, page: (items, isFirst) => writer.page(items.map(shown), isFirst) }
}

function streamed(
  writer: RecordWriter,
  first: Page,
  next: (after: string) => Promise<Page>,
  { signal }: Pick<Call, 'signal'>,
): ReadableStream<Uint8Array> {
  let page: Page | null = first
  let isFirst = true
  return new ReadableStream({
    async pull(controller) {
      if (page === null || signal.aborted) {
        controller.close()
        return
      }
      const { items, hasMore, cursor } = page
      const head = isFirst ? writer.head : ''
      const isLast = !hasMore || cursor === null
      controller.enqueue(Buffer.from(`${head}${writer.page(items, isFirst)}${isLast ? writer.foot : ''}`))
      isFirst = false
      page = isLast ? null : await next(cursor)
    },
  })
}

const parsed = (text: string | undefined): unknown => (text === undefined ? undefined : JSON.parse(text))

function audited(table: Table, { format, fields, filter, filters, orFilter, orFilters, q }: Query): object {
  const [all, any] = [parsed(filter ?? filters), parsed(orFilter ?? orFilters)]
  return {
    format,
    ...(fields !== undefined && { fields }),
    ...(all !== undefined && { filter: maskedFilter(table, all) }),
    ...(any !== undefined && { orFilter: maskedFilter(table, any) }),
    ...(q !== undefined && { q }),
  }
}
