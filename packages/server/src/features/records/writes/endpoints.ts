/** Endpoints that write records: insert, upsert, update, delete, batch and batch-by-filter. */

import { required } from '../../../access/check.ts'
import { z } from '../../../base/schemas/z.ts'
import { type Call, type Endpoint, endpoint, type Reply } from '../../../http/endpoint.ts'
import { booleanParam, flagParam, textParam } from '../../../http/input/query-schema.ts'
import type { ResponseLimits } from '../../../http/replies/large-responses.ts'
import { json } from '../../../http/replies/reply.ts'
import { batchByFilterRecordsMax, batchOperationsMax } from '../../../limits/api.ts'
import { readsOtherTables } from '../../../query/matches.ts'
import type { TableCall } from '../resolve-table.ts'
import { common, type ResolveCall, recordSchema, tablePaths, withTable, writeScope } from '../table-endpoint.ts'
import { batchShape, changeFound, findByFilter, parseBatch, parseByFilter, runBatch } from './batch.ts'
import { type Body, type Generated, parseInsert, parsePatch, sentBy } from './input.ts'
import { decideInsert, insertRecord } from './insert.ts'
import type { ResponseShape } from './replay.ts'
import { respondWithRecord, respondWithRemoval, toResponse, type WriteResponse } from './response.ts'
import { parseConflictTarget, parseUpsert, requireUpsert, upsertRecord } from './upsert.ts'
import { deleteRecord, updateRecord } from './write.ts'
import type { Write } from './write-context.ts'
import type { RunWrite, RunWriteOptions } from './write-runner.ts'

const insertQuery = z.object({
  upsert: booleanParam('true: update the record with the same conflict target value, or insert'),
  conflictTarget: textParam('id or a unique field; default id'),
})
const noQuery = z.object({})
const batchQuery = insertQuery.extend({ versions: flagParam('1: the response has `versions`') })

/** Bounded here, so that the items of too long a list are not parsed. */
const operations = <Operation extends z.ZodType>(operation: Operation) =>
  z.array(operation).max(batchOperationsMax).optional()
const ifMatch = z
  .union([z.string(), z.int()])
  .meta({ description: 'A version of the record: the operation fails with 412 if it has another one' })
const batchBody = z.strictObject({
  inserts: operations(recordSchema),
  updates: operations(z.strictObject({ id: z.string(), data: recordSchema, ifMatch: ifMatch.optional() })),
  deletes: operations(z.union([z.string(), z.strictObject({ id: z.string(), ifMatch })])),
})
const byFilterBody = z.strictObject({
  action: z.enum(['update', 'delete']),
  filter: z.unknown().optional(),
  orFilter: z.unknown().optional(),
  filters: z.unknown().optional(),
  orFilters: z.unknown().optional(),
  data: recordSchema.optional(),
  limit: z
    .int()
    .min(1)
    .max(batchByFilterRecordsMax)
    .optional()
    .meta({ description: `Maximum number of records, in order of id; default ${batchByFilterRecordsMax}` }),
})
const versionsSchema = z.array(z.int().nullable())
const batchReply = z.object({
  inserted: z.array(recordSchema),
  updated: z.array(recordSchema),
  deleted: z.array(z.string()),
  versions: z.object({ inserted: versionsSchema, updated: versionsSchema, deleted: versionsSchema }).optional().meta({
    description: 'With `versions=1`, in the order of the records; null for those that the caller may not read',
  }),
})
const byFilterReply = z.object({ processed: z.number(), succeeded: z.number() })

/** The shape of responses without fields of records. */
const plain = (): ResponseShape => ({ kind: 'plain' })

/** The row of a write whose response shows it, unless the read rule makes the response read the table again. */
const onlyRow = ({ permissions }: TableCall, id: string | null): string | null | undefined =>
  readsOtherTables(permissions.read()) ? undefined : id

export interface WriteEndpointsDeps {
  readonly resolve: ResolveCall
  readonly runWrite: RunWrite
  /** Id and time of the records that one request inserts. */
  readonly generate: () => Generated
  readonly limits: ResponseLimits
}

export const createWriteEndpoints = (deps: WriteEndpointsDeps): readonly Endpoint[] => [
  insertEndpoint(deps),
  updateEndpoint(deps),
  deleteEndpoint(deps),
  batchEndpoint(deps),
  batchByFilterEndpoint(deps),
]

function insertEndpoint(deps: WriteEndpointsDeps): Endpoint {
  return endpoint({
    ...common,
    name: 'records.insert',
    method: 'POST',
    paths: tablePaths(),
    summary: 'Insert a record, or upsert it with `upsert=true`',
    description: 'An upsert updates the record that has the same `conflictTarget` (default `id`), or inserts.',
    scope: writeScope,
    query: insertQuery,
    body: recordSchema,
    replies: {
      200: { description: 'Upsert: the existing record, updated', schema: recordSchema },
      201: { description: 'The stored record', schema: recordSchema },
    },
    errors: [404, 409],
    handle: (call) =>
      withTable(deps.resolve(call), (table) =>
        call.query.upsert ? upsertOne(deps, call, table, call.query.conflictTarget) : insertOne(deps, call, table),
      ),
  })
}

function insertOne(deps: WriteEndpointsDeps, call: Call<unknown, Body>, table: TableCall): Promise<Reply> {
  required(table.permissions.insert(), call.caller)
  const row = parseInsert(table.bodyView, call.body, deps.generate())
  const sent = Object.keys(call.body)
  const record = { row, hasOwnId: Object.hasOwn(call.body, 'id') }
  const shapeOf = (): ResponseShape => ({ kind: 'record', sent, hasAction: false })
  return deps.runWrite(
    call,
    table,
    shapeOf,
    async (write) => respondWithRecord(write, { ...(await insertRecord(write, record)), sent }, 201),
    {
      foresees: { operation: 'insert', rehearse: (write) => decideInsert(write, record) },
      row: onlyRow(table, record.hasOwnId ? (row.id as string) : null),
    },
  )
}

function upsertOne(
  deps: WriteEndpointsDeps,
  call: Call<unknown, Body>,
  table: TableCall,
  conflictTarget: string | undefined,
): Promise<Reply> {
  requireUpsert(table)
  const target = parseConflictTarget(table, conflictTarget)
  const upsert = parseUpsert(table, call.body, deps.generate(), target)
  const shapeOf = (): ResponseShape => ({ kind: 'record', sent: [...sentBy(upsert.patch)], hasAction: true })
  return deps.runWrite(call, table, shapeOf, async (write) => {
    const written = await upsertRecord(write, upsert)
    return respondWithRecord(write, written, written.action === 'inserted' ? 201 : 200)
  })
}

function updateEndpoint(deps: WriteEndpointsDeps): Endpoint {
  return endpoint({
    ...common,
    name: 'records.update',
    method: 'PATCH',
    paths: tablePaths('/:id'),
    summary: 'Update fields of a record',
    description:
      'A value may be `{"$op":"increment","value":n}` or `{"$op":"deleteField"}`. `If-Match` makes it conditional.',
    scope: writeScope,
    query: noQuery,
    body: recordSchema,
    replies: { 200: { description: 'The updated record', schema: recordSchema } },
    errors: [404, 409, 412],
    handle: (call) => withTable(deps.resolve(call), (table) => updateOne(deps, call, table)),
  })
}

function updateOne({ runWrite }: WriteEndpointsDeps, call: Call<unknown, Body>, table: TableCall): Promise<Reply> {
  required(table.permissions.updateBefore(), call.caller)
  const patch = parsePatch(table.bodyView, call.body)
  const ifMatch = call.headers.get('If-Match')
  const id = call.params.id ?? ''
  const sent = [...sentBy(patch)]
  const shapeOf = (): ResponseShape => ({ kind: 'record', sent, hasAction: false })
  return runWrite(
    call,
    table,
    shapeOf,
    async (write) => respondWithRecord(write, { ...(await updateRecord(write, id, patch, ifMatch)), sent }, 200),
    {
      foresees: { operation: 'update', rehearse: (write) => updateRecord(write, id, patch, ifMatch) },
      row: onlyRow(table, id),
    },
  )
}

function deleteEndpoint({ resolve, runWrite }: WriteEndpointsDeps): Endpoint {
  return endpoint({
    ...common,
    name: 'records.delete',
    method: 'DELETE',
    paths: tablePaths('/:id'),
    summary: 'Delete a record',
    scope: writeScope,
    query: noQuery,
    replies: { 200: { description: 'Deleted', schema: z.object({ ok: z.literal(true) }) } },
    errors: [404, 409, 412],
    async handle(call) {
      const table = await resolve(call)
      required(table.permissions.delete(), call.caller)
      const ifMatch = call.headers.get('If-Match')
      const id = call.params.id ?? ''
      const remove = (write: Write): Promise<number> => deleteRecord(write, id, ifMatch)
      return runWrite(call, table, plain, async (write) => respondWithRemoval(table, await remove(write)), {
        foresees: { operation: 'delete', rehearse: remove },
        row: id,
      })
    },
  })
}

function batchEndpoint({ resolve, runWrite, generate, limits }: WriteEndpointsDeps): Endpoint {
  return endpoint({
    ...common,
    name: 'records.batch',
    isExpensive: true,
    method: 'POST',
    paths: tablePaths('/batch'),
    summary: 'Insert, update and delete in one transaction',
    description: `At most ${batchOperationsMax} operations; all or nothing. With \`upsert=true\` each insert is an upsert.`,
    scope: writeScope,
    query: batchQuery,
    body: batchBody,
    replies: {
      200: { description: 'The records after the operations, in the order of the request', schema: batchReply },
    },
    errors: [404, 409, 412],
    async handle(call) {
      const table = await resolve(call)
      const upsert = call.query.upsert
        ? { conflictTarget: parseConflictTarget(table, call.query.conflictTarget) }
        : null
      const batch = parseBatch(table, call.body, generate(), { upsert, showsVersions: call.query.versions })
      const shapeOf = (): ResponseShape => batchShape(batch)
      const inserts = batch.upserts.length + batch.updates.length + batch.deletes.length === 0
      const work = (write: Write): Promise<WriteResponse> => runBatch(write, batch, limits.bytesMax())
      const options: RunWriteOptions = inserts ? { foresees: { operation: 'insert', rehearse: work } } : {}
      return runWrite(call, table, shapeOf, work, options)
    },
  })
}

function batchByFilterEndpoint({ resolve, runWrite }: WriteEndpointsDeps): Endpoint {
  return endpoint({
    ...common,
    name: 'records.batchByFilter',
    isExpensive: true,
    method: 'POST',
    paths: tablePaths('/batch-by-filter'),
    summary: 'Update or delete the records a filter selects',
    scope: writeScope,
    query: noQuery,
    body: byFilterBody,
    replies: { 200: { description: 'How many matched and changed', schema: byFilterReply } },
    errors: [404, 409],
    async handle(call) {
      const table = await resolve(call)
      const selection = parseByFilter(table, call.body)
      return runWrite(call, table, plain, async (write) => {
        const found = await findByFilter(write, selection)
        await changeFound(write, found, selection)
        return toResponse(json({ processed: found.length, succeeded: found.length }))
      })
    },
  })
}
