/** The endpoint table of the records API: paths, schemas, scopes and descriptions. */
import { z } from 'zod'
import { type Call, type Endpoint, endpoint, type Params, type Reply } from '../../http/endpoint.ts'
import { booleanParam, cursorParam, integerParam, textParam } from '../../http/input/query-schema.ts'
import {
  batchByFilterRecordsMax,
  batchOperationsMax,
  listLimitDefault,
  listLimitMax,
  orFilterConditionsMax,
} from '../../limits/api.ts'
import { readScopeOf } from './resolve-table.ts'
import type { Body } from './writes/input.ts'

const paging = {
  limit: integerParam({ max: listLimitMax, clamps: true, default: listLimitDefault, description: 'Records per page' }),
  page: integerParam({ description: 'Page number, instead of offset' }),
  perPage: integerParam({ max: listLimitMax, clamps: true, description: 'Records per page, with page' }),
  offset: integerParam({ min: 0, description: 'Records to skip, instead of page' }),
}
const filtering = {
  filter: textParam('Conditions that must all match: [["field","==",value],…]'),
  orFilter: textParam(`Conditions of which at least one must match, at most ${orFilterConditionsMax}`),
  filters: textParam('Alias of filter'),
  orFilters: textParam('Alias of orFilter'),
}
const fields = textParam('Fields to return: name,title')

const listQuery = z.object({
  ...filtering,
  sort: textParam('field:asc or field:desc, comma-separated'),
  fields,
  ...paging,
  after: cursorParam('Cursor to page forward from; empty for the start'),
  before: cursorParam('Cursor to page backward from; empty for the end'),
})
const countQuery = z.object(filtering)
const getQuery = z.object({ fields })
const searchQuery = z.object({
  q: textParam('Words that must all occur; the last one matches as a prefix'),
  ...filtering,
  fields,
  ...paging,
  after: cursorParam('Cursor of a page that ended early'),
  highlightPre: textParam('Opening tag of a highlight; default <mark>'),
  highlightPost: textParam('Closing tag of a highlight; default </mark>'),
})
const insertQuery = z.object({
  upsert: booleanParam('true: update the record with the same conflict target value, or insert'),
  conflictTarget: textParam('id or a unique field; default id'),
})
const noQuery = z.object({})

/** zod's own `record` would drop a member called `__proto__`, which has to be rejected instead. */
const record = z
  .unknown()
  .refine(
    (value): value is Body => typeof value === 'object' && value !== null && !Array.isArray(value),
    'must be an object',
  )
  .meta({ type: 'object', additionalProperties: true }) as z.ZodType<Body>
/** Bounded here, so that the items of too long a list are not parsed. */
const operations = <Operation extends z.ZodType>(operation: Operation) =>
  z.array(operation).max(batchOperationsMax).optional()
const batchBody = z.strictObject({
  inserts: operations(record),
  updates: operations(z.strictObject({ id: z.string(), data: record })),
  deletes: operations(z.string()),
})
const byFilterBody = z.strictObject({
  action: z.enum(['update', 'delete']),
  filter: z.unknown().optional(),
  orFilter: z.unknown().optional(),
  filters: z.unknown().optional(),
  orFilters: z.unknown().optional(),
  data: record.optional(),
  limit: z
    .int()
    .min(1)
    .max(batchByFilterRecordsMax)
    .optional()
    .meta({ description: `Maximum number of records, in order of id; default ${batchByFilterRecordsMax}` }),
})

const page = z.object({
  items: z.array(record),
  total: z.number().nullable(),
  page: z.number().nullable(),
  perPage: z.number().nullable(),
  hasMore: z.boolean().nullable(),
  cursor: z.string().nullable(),
  truncated: z.literal(true).optional().meta({
    description: 'The page ended before a record that would have made the response too large; `cursor` continues it',
  }),
})
const batchReply = z.object({ inserted: z.array(record), updated: z.array(record), deleted: z.array(z.string()) })
const byFilterReply = z.object({ processed: z.number(), succeeded: z.number() })

const bases = ['/api/db/:namespace/tables/:table', '/api/db/:namespace/:instanceId/tables/:table'] as const
const at = (rest = ''): string[] => bases.map((base) => base + rest)

const reads = ({ table }: Params): string => readScopeOf(table)
const writes = (params: Params): string => `db:table:${params.table}:write`

/** The handlers of the endpoints. */
export interface RecordsHandlers {
  list(call: Call<z.infer<typeof listQuery>>): Promise<Reply>
  get(call: Call<z.infer<typeof getQuery>>): Promise<Reply>
  insert(call: Call<z.infer<typeof insertQuery>, Body>): Promise<Reply>
  update(call: Call<unknown, Body>): Promise<Reply>
  delete(call: Call): Promise<Reply>
  count(call: Call<z.infer<typeof countQuery>>): Promise<Reply>
  search(call: Call<z.infer<typeof searchQuery>>): Promise<Reply>
  batch(call: Call<z.infer<typeof insertQuery>, z.infer<typeof batchBody>>): Promise<Reply>
  batchByFilter(call: Call<unknown, z.infer<typeof byFilterBody>>): Promise<Reply>
}

const common = { tag: 'Database', credentials: 'rules', rateLimit: 'db' } as const

export function recordsEndpoints(handlers: RecordsHandlers): Endpoint[] {
  return [
    endpoint({
      ...common,
      name: 'records.list',
      method: 'GET',
      paths: at(),
      summary: 'List records',
      description:
        'Offset mode (default, with `page` or `offset`) returns `total`; cursor mode (with `after` or `before`) returns `hasMore` and `cursor`.',
      scope: reads,
      query: listQuery,
      replies: { 200: { description: 'A page of records', schema: page } },
      errors: [404],
      handle: handlers.list,
    }),
    endpoint({
      ...common,
      name: 'records.count',
      method: 'GET',
      paths: at('/count'),
      summary: 'Count records',
      scope: reads,
      query: countQuery,
      replies: { 200: { description: 'How many match', schema: z.object({ total: z.number() }) } },
      errors: [404],
      handle: handlers.count,
    }),
    endpoint({
      ...common,
      name: 'records.search',
      method: 'GET',
      paths: at('/search'),
      summary: 'Full-text search',
      description:
        'Words are combined with AND, the last one also matches as a beginning; best matches first, with `highlights`. A page that ended early is continued by `after`.',
      scope: reads,
      query: searchQuery,
      replies: { 200: { description: 'A page of records, best first', schema: page } },
      errors: [404],
      handle: handlers.search,
    }),
    endpoint({
      ...common,
      name: 'records.get',
      method: 'GET',
      paths: at('/:id'),
      summary: 'Get one record',
      scope: reads,
      query: getQuery,
      replies: { 200: { description: 'The record', schema: record } },
      errors: [404],
      handle: handlers.get,
    }),
    endpoint({
      ...common,
      name: 'records.insert',
      method: 'POST',
      paths: at(),
      summary: 'Insert a record, or upsert it with `upsert=true`',
      description: 'An upsert updates the record that has the same `conflictTarget` (default `id`), or inserts.',
      scope: writes,
      query: insertQuery,
      body: record,
      replies: {
        200: { description: 'Upsert: the existing record, updated', schema: record },
        201: { description: 'The stored record', schema: record },
      },
      errors: [404, 409],
      handle: handlers.insert,
    }),
    endpoint({
      ...common,
      name: 'records.update',
      method: 'PATCH',
      paths: at('/:id'),
      summary: 'Update fields of a record',
      description:
        'A value may be `{"$op":"increment","value":n}` or `{"$op":"deleteField"}`. `If-Match` makes it conditional.',
      scope: writes,
      query: noQuery,
      body: record,
      replies: { 200: { description: 'The updated record', schema: record } },
      errors: [404, 409, 412],
      handle: handlers.update,
    }),
    endpoint({
      ...common,
      name: 'records.delete',
      method: 'DELETE',
      paths: at('/:id'),
      summary: 'Delete a record',
      scope: writes,
      query: noQuery,
      replies: { 200: { description: 'Deleted', schema: z.object({ ok: z.literal(true) }) } },
      errors: [404, 409, 412],
      handle: handlers.delete,
    }),
    endpoint({
      ...common,
      name: 'records.batch',
      method: 'POST',
      paths: at('/batch'),
      summary: 'Insert, update and delete in one transaction',
      description: `At most ${batchOperationsMax} operations; all or nothing. With \`upsert=true\` each insert is an upsert.`,
      scope: writes,
      query: insertQuery,
      body: batchBody,
      replies: {
        200: { description: 'The records after the operations, in the order of the request', schema: batchReply },
      },
      errors: [404, 409],
      handle: handlers.batch,
    }),
    endpoint({
      ...common,
      name: 'records.batchByFilter',
      method: 'POST',
      paths: at('/batch-by-filter'),
      summary: 'Update or delete the records a filter selects',
      scope: writes,
      query: noQuery,
      body: byFilterBody,
      replies: { 200: { description: 'How many matched and changed', schema: byFilterReply } },
      errors: [404, 409],
      handle: handlers.batchByFilter,
    }),
  ]
}
