/** What a bulk job is to do, how far it has come, and both as the dashboard shows them. */
import { z } from '../../../base/schemas/z.ts'
import { formatDatetime } from '../../../base/text/datetime.ts'
import type { StoredBulkJob } from '../../bulk-jobs.ts'
import type { ByFilterBody } from '../writes/batch.ts'

/** The administrator who has started the job. Its rights are those that the administrator has when a page runs. */
interface BulkActor {
  readonly userId: string
  readonly email: string | null
  readonly sessionId: string
  readonly signedInAtMs: number
  /** Of the client, for the audit log. */
  readonly address: string
}

export interface BulkInput {
  readonly namespace: string
  readonly instanceId: string | null
  readonly table: string
  /** The path of the table below `/api/db`, for the audit log. */
  readonly path: string
  /** `limit` is the number of records that was confirmed: no more are changed. */
  readonly change: Omit<ByFilterBody, 'limit'> & {
    readonly limit: number
    /** Words of a search that selects the records with the filter. */
    readonly q?: string | undefined
  }
  /** The change as the audit log shows it. */
  readonly audited: object
  readonly actor: BulkActor
  /** Of the request that started it. */
  readonly requestId: string
}

interface BulkFailed {
  readonly id: string
  readonly message: string
}

export interface BulkProgress {
  /** Pages so far, the refused ones included: names the effect of the next one. */
  readonly page: number
  /** The last record of the latest page; null before the first. */
  readonly after: string | null
  readonly changed: number
  /** Records that could not be changed. */
  readonly failed: number
  /** The first of them. */
  readonly failures: readonly BulkFailed[]
  /** Records of the next page: fewer after one that was refused. */
  readonly size: number
}

/** One unfinished job has it. */
export const keyOf = ({ namespace, instanceId, table }: Pick<BulkInput, 'namespace' | 'instanceId' | 'table'>) =>
  JSON.stringify([namespace, instanceId, table])

export const jobSchema = z.object({
  id: z.string(),
  action: z.enum(['update', 'delete']),
  state: z.enum(['waiting', 'running', 'done', 'failed', 'canceled']),
  total: z.int().meta({ description: 'Records that were confirmed' }),
  changed: z.int(),
  failed: z.int().meta({ description: 'Records that were refused, such as those that others refer to' }),
  failures: z.array(z.object({ id: z.string(), message: z.string() })).meta({ description: 'The first of them' }),
  error: z.string().nullable(),
  startedBy: z.string().nullable(),
  createdAt: z.iso.datetime(),
  finishedAt: z.iso.datetime().nullable(),
})

export function formatJob(job: StoredBulkJob): z.output<typeof jobSchema> {
  const { change, actor } = JSON.parse(job.input) as BulkInput
  const { changed = 0, failed = 0, failures = [] }: Partial<BulkProgress> = JSON.parse(job.progress ?? '{}')
  return {
    id: job.id,
    action: change.action,
    state: job.state,
    total: change.limit,
    changed,
    failed,
    failures: [...failures],
    error: job.error,
    startedBy: actor.email,
    createdAt: formatDatetime(job.createdAtMs),
    finishedAt: job.finishedAtMs === null ? null : formatDatetime(job.finishedAtMs),
  }
}
