/**
 * The endpoint that imports records with a service key: inserts or upserts in one transaction, answered with counts. A
 * dry run carries out everything and rolls it back; hooks before writes run unless the request leaves them out.
 */

import type { Log } from '../../../base/log.ts'
import { z } from '../../../base/schemas/z.ts'
import { ApiError, accessDenied } from '../../../errors.ts'
import { type Call, type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import { batchOperationsMax } from '../../../limits/api.ts'
import type { TableCall } from '../resolve-table.ts'
import { common, recordSchema, tablePaths, writeScope } from '../table-endpoint.ts'
import { type Batch, parseBatch } from './batch.ts'
import type { WriteEndpointsDeps } from './endpoints.ts'
import { insertRecords } from './insert.ts'
import { toResponse, type WriteResponse } from './response.ts'
import { parseConflictTarget, upsertRecords } from './upsert.ts'
import type { Write } from './write-context.ts'
import type { RunWriteOptions } from './write-runner.ts'

const importBody = z.strictObject({
  inserts: z.array(recordSchema).min(1).max(batchOperationsMax),
  conflictTarget: z
    .string()
    .optional()
    .meta({ description: 'id or a unique field: a record with the same value is updated' }),
  dryRun: z.boolean().optional().meta({ description: 'Check everything and store nothing' }),
  hooks: z.boolean().optional().meta({ description: 'false: no `before` function runs; for service keys only' }),
})

const importReply = z.object({ inserted: z.int(), updated: z.int() })
type Counts = z.output<typeof importReply>

/** Rolls back a dry run. An `ApiError`, because those of a pass whose hooks have not run yet are discarded. */
class DryRun extends ApiError {
  constructor(readonly counts: Counts) {
    super(200, 'dry-run', 'A dry run stores nothing')
  }
}

async function store(write: Write, batch: Batch): Promise<Counts> {
  const pathOf = (index: number): string => `inserts[${index}]`
  const inserted = await insertRecords(write, batch.inserts, pathOf)
  const upserted = await upsertRecords(write, batch.upserts, pathOf)
  const updated = upserted.filter(({ action }) => action === 'updated').length
  return { inserted: inserted.length + upserted.length - updated, updated }
}

export interface ImportEndpointDeps extends WriteEndpointsDeps {
  readonly log: Log
}

export function createImportEndpoint({ resolve, runWrite, generate, log }: ImportEndpointDeps): Endpoint {
  const noteSkippedHooks = ({ caller, requestId }: Call, { table, address }: TableCall, records: number): void => {
    const { namespace, name } = table
    const key = caller.kind === 'service' ? caller.keyName : ''
    const { instanceId } = address
    log.info('records.hooks_skipped', { table: `${namespace}.${name}`, instanceId, records, key, requestId })
  }
  return endpoint({
    ...common,
    credentials: 'service',
    name: 'records.import',
    isExpensive: true,
    method: 'POST',
    paths: tablePaths('/batch/import'),
    summary: 'Import records',
    description: `Inserts at most ${batchOperationsMax} records, or upserts them with \`conflictTarget\`, in one transaction. An error names each faulty record and nothing is stored.`,
    scope: writeScope,
    body: importBody,
    replies: { 200: { description: 'How many records were inserted and updated', schema: importReply } },
    errors: [404, 409],
    async handle(call) {
      const { inserts, conflictTarget, dryRun = false, hooks = true } = call.body
      if (!hooks && call.caller.kind === 'service' && call.caller.admin)
        throw accessDenied('Only a service key may leave out hooks')
      const table = await resolve(call)
      const upsert =
        conflictTarget === undefined ? null : { conflictTarget: parseConflictTarget(table, conflictTarget) }
      const batch = parseBatch(table, { inserts }, generate(), { upsert, showsVersions: false })
      if (!hooks) noteSkippedHooks(call, table, inserts.length)
      const work = async (write: Write): Promise<WriteResponse> => {
        const counts = await store(write, batch)
        if (dryRun) throw new DryRun(counts)
        return toResponse(json(counts))
      }
      const options: RunWriteOptions = {
        skipsHooks: !hooks,
        // Once the record is gone that an import collides with, the same request can succeed.
        storesErrors: false,
        ...(upsert === null && { foresees: { operation: 'insert', rehearse: work } }),
      }
      return runWrite(call, table, () => ({ kind: 'plain' }), work, options).catch((error) => {
        if (error instanceof DryRun) return json(error.counts)
        throw error
      })
    },
  })
}
