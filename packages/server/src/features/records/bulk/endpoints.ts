/**
 * Endpoints of bulk jobs, for the dashboard alone: start the change or deletion of all records that a filter or a
 * search selects, follow it, cancel it. `run-bulk-job` does the work.
 */

import type { ServiceCaller } from '../../../access/caller.ts'
import { z } from '../../../base/schemas/z.ts'
import { accessDenied, notFound, payloadTooLarge } from '../../../errors.ts'
import { type Call, type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import { dashboardPath } from '../../../http/security/dashboard-access.ts'
import { bulkFoundMax, bulkJobsListed, bulkRecordsMax, bulkWithoutSignInMax } from '../../../limits/dashboard.ts'
import { functionJobInputChars } from '../../../limits/function-jobs.ts'
import type { Table } from '../../../query/table.ts'
import type { BulkJobs, StoredBulkJob } from '../../bulk-jobs.ts'
import { maskedFilter, maskedValues } from '../hidden-values.ts'
import type { TableCall } from '../resolve-table.ts'
import { findFewRows } from '../search/found-rows.ts'
import { type ResolveCall, readScope, recordSchema, writeScope } from '../table-endpoint.ts'
import { parseByFilter } from '../writes/batch.ts'
import { type BulkInput, formatJob, jobSchema, keyOf } from './bulk-job.ts'

export interface BulkEndpointsDeps {
  readonly resolve: ResolveCall
  readonly jobs: () => BulkJobs
}

const startBody = z.strictObject({
  action: z.enum(['update', 'delete']),
  filter: z.unknown().optional(),
  orFilter: z.unknown().optional(),
  q: z
    .string()
    .optional()
    .meta({ description: `Words of a full-text search with at most ${bulkFoundMax} results; the filter applies too` }),
  data: recordSchema.optional(),
  limit: z
    .int()
    .min(1)
    .max(bulkRecordsMax)
    .meta({ description: 'The number of records that was confirmed: no more are changed' }),
})

const base = `${dashboardPath}/api/bulk`
const paths = (rest = ''): string[] => [
  `${base}/:namespace/tables/:table${rest}`,
  `${base}/:namespace/:instanceId/tables/:table${rest}`,
]
const common = { tag: 'Dashboard', credentials: 'admin', rateLimit: 'db', isSecret: true } as const

export function createBulkEndpoints({ resolve, jobs }: BulkEndpointsDeps): readonly Endpoint[] {
  /** The job of the path. Throws 404 for one of another table, too. */
  async function getJob(call: Call): Promise<StoredBulkJob> {
    const job = await jobs().find(call.params.id ?? '')
    if (!job || job.key !== keyOf(addressOf(call))) throw notFound('Job')
    return job
  }
  return [
    endpoint({
      ...common,
      name: 'dashboard.startBulkJob',
      method: 'POST',
      paths: paths(),
      summary: 'Change or delete all records that a filter or a search selects, as a job',
      scope: writeScope,
      requiresRecentSignIn: ({ limit }) => limit > bulkWithoutSignInMax,
      body: startBody,
      replies: { 202: { description: 'The job', schema: jobSchema } },
      errors: [404, 409, 413],
      async handle(call) {
        const { limit, ...change } = call.body
        const table = await resolve(call)
        parseByFilter(table, change)
        if (change.q !== undefined) await findFewRows(table, change.q, bulkFoundMax)
        const { admin } = call.caller as ServiceCaller
        if (!admin) throw accessDenied()
        const { userId, email, sessionId, signedInAtMs } = admin
        const address = addressOf(call)
        const audited = { ...masked(table.table, change), limit }
        const input = JSON.stringify({
          ...address,
          path: pathOf(table),
          change: { ...change, limit },
          audited,
          actor: { userId, email, sessionId, signedInAtMs, address: call.address },
          requestId: call.requestId,
        } satisfies BulkInput)
        if (input.length > functionJobInputChars) throw payloadTooLarge(functionJobInputChars, 'change')
        const id = await jobs().add(keyOf(address), input)
        call.audit?.({ before: null, after: { job: id, ...audited } })
        return json(formatJob((await jobs().find(id)) as StoredBulkJob), 202)
      },
    }),
    endpoint({
      ...common,
      name: 'dashboard.listBulkJobs',
      method: 'GET',
      paths: paths(),
      summary: 'List the bulk jobs of a table, the newest first',
      scope: readScope,
      replies: { 200: { description: 'The jobs', schema: z.object({ jobs: z.array(jobSchema) }) } },
      errors: [404],
      async handle(call) {
        await resolve(call)
        return json({ jobs: (await jobs().list(keyOf(addressOf(call)), bulkJobsListed)).map(formatJob) })
      },
    }),
    endpoint({
      ...common,
      name: 'dashboard.getBulkJob',
      method: 'GET',
      paths: paths('/:id'),
      summary: 'Get a bulk job with its progress',
      scope: readScope,
      replies: { 200: { description: 'The job', schema: jobSchema } },
      errors: [404],
      handle: async (call) => json(formatJob(await getJob(call))),
    }),
    endpoint({
      ...common,
      name: 'dashboard.cancelBulkJob',
      method: 'DELETE',
      paths: paths('/:id'),
      summary: 'Cancel a bulk job',
      description:
        'Nothing changes after the response; what has changed stays. A job that has ended is returned as it is.',
      scope: writeScope,
      replies: { 200: { description: 'The job', schema: jobSchema } },
      errors: [404],
      async handle(call) {
        const job = await getJob(call)
        await jobs().cancel(job.id)
        const view = formatJob(await getJob(call))
        const { state, changed, failed } = view
        call.audit?.({ before: null, after: { job: job.id, state, changed, failed } })
        return json(view)
      },
    }),
  ]
}

const addressOf = ({ params }: Call): Pick<BulkInput, 'namespace' | 'instanceId' | 'table'> => {
  const { namespace = '', instanceId = null, table = '' } = params
  return { namespace, instanceId, table }
}

const pathOf = ({ address, table }: TableCall): string =>
  `/api/db/${[address.namespace, address.instanceId, 'tables', table.name].filter((part) => part !== null).join('/')}`

/** The change without the values of hidden fields. */
const masked = (table: Table, { action, filter, orFilter, q, data }: Omit<z.output<typeof startBody>, 'limit'>) => ({
  action,
  ...(filter !== undefined && { filter: maskedFilter(table, filter) }),
  ...(orFilter !== undefined && { orFilter: maskedFilter(table, orFilter) }),
  // Hidden fields are not searched.
  ...(q !== undefined && { q }),
  ...(data && { data: maskedValues(table, data) }),
})
