/** Stores and runs bulk jobs as jobs of a function of the platform: with their leases, retries and bounds. */
import type { Clock } from '../../../base/clock.ts'
import { createUuid7 } from '../../../base/crypto/ids.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { conflict, unavailable } from '../../../errors.ts'
import { bulkCancelTriesMax, bulkJobsMax } from '../../../limits/dashboard.ts'
import { functionJobLeaseMs, functionRetries } from '../../../limits/function-jobs.ts'
import {
  type BulkClaim,
  BulkFailure,
  type BulkJobs,
  type BulkState,
  type BulkWork,
  LeaseLost,
  type StoredBulkJob,
} from '../../bulk-jobs.ts'
import type { Background } from '../background.ts'
import type { JobStatus } from './job.ts'
import { canceledError } from './job-admin.ts'
import { JobError } from './job-error.ts'
import type { RunClaimed } from './job-runner.ts'
import type { JobTables } from './migrations.ts'

/** The function that runs these jobs; no export has such a name. */
export const bulkFunction = '@bulk'

interface Row {
  readonly id: string
  readonly unique_key: string
  readonly input: string
  readonly status: JobStatus
  readonly progress: string | null
  readonly error: string | null
  readonly created_at: unknown
  readonly finished_at: unknown
}

/** An attempt that failed is followed by another one. */
const stateOf = ({ status, error, progress }: Row): BulkState => {
  if (status === 'dead') return error === canceledError ? 'canceled' : 'failed'
  if (status === 'failed') return 'running'
  return status === 'waiting' && progress !== null ? 'running' : status
}

const storedOf = (row: Row): StoredBulkJob => ({
  id: row.id,
  key: row.unique_key,
  input: row.input,
  state: stateOf(row),
  progress: row.progress,
  error: row.error,
  createdAtMs: Number(row.created_at),
  finishedAtMs: row.finished_at === null ? null : Number(row.finished_at),
})

const columns = sql`id, unique_key, input, status, progress, error, created_at, finished_at`

/** The holder of a lease for a cancellation, which no node renews. */
const cancelHolder = '@cancel'

/**
 * Claims an unfinished job for its cancellation, from the node that runs it too: a lease with the next fencing token,
 * which concurrent cancellations share. If they end early, the job continues once the lease has expired. Null if the
 * job has ended.
 */
const claimForCancel = ({ database, jobs }: JobTables, id: string, nowMs: number): Promise<BulkClaim | null> =>
  database.write(async (tx) => {
    const isClaimed = await tx.run(sql`UPDATE ${jobs} SET status = 'running', ready = 0,
      fence = fence + CASE WHEN holder = ${cancelHolder} THEN 0 ELSE 1 END, holder = ${cancelHolder},
      lease_until = ${nowMs + functionJobLeaseMs}
      WHERE id = ${id} AND function = ${bulkFunction} AND finished_at IS NULL`)
    if (isClaimed === 0) return null
    const [row] = await tx.all<Pick<Row, 'input' | 'progress'> & { fence: unknown }>(
      sql`SELECT fence, input, progress FROM ${jobs} WHERE id = ${id}`,
    )
    return row ? { id, token: Number(row.fence), input: row.input, progress: row.progress } : null
  })

/** Ends a claimed job as canceled; false where the claim was lost. */
async function endCanceled(
  { database, jobs }: JobTables,
  { id, token, progress }: BulkClaim,
  nowMs: number,
): Promise<boolean> {
  const ended = await database.write((tx) =>
    tx.run(sql`UPDATE ${jobs} SET status = 'dead', holder = NULL, lease_until = NULL, finished_at = ${nowMs}, error = ${canceledError},
      progress = ${progress} WHERE id = ${id} AND fence = ${token} AND status = 'running'`),
  )
  return ended > 0
}

export interface BulkJobsDeps {
  readonly background: Background
  /** Null where there are no bulk jobs. */
  readonly work: BulkWork | null
  readonly clock: Clock
}

export function createBulkJobs({ background, work, clock }: BulkJobsDeps): BulkJobs {
  const newId = createUuid7(clock)
  return {
    async add(key, input) {
      const { store, runner, tables } = await background.openParts()
      const { database, jobs } = tables
      const id = newId()
      await database.write(async (tx) => {
        await tx.lock('jobs keys', `jobs of ${bulkFunction}`)
        const [unfinished] = await tx.all<{ count: unknown }>(
          sql`SELECT count(*) AS count FROM ${jobs} WHERE function = ${bulkFunction} AND finished_at IS NULL`,
        )
        if (Number(unfinished?.count) >= bulkJobsMax) throw conflict(`There are already ${bulkJobsMax} bulk jobs`)
        const job = { id, function: bulkFunction, kind: 'bulk', key: null, uniqueKey: key, input } as const
        const [added] = await store.add(tx, [{ ...job, runAtMs: clock.now(), depth: 1 }])
        if (!added?.isNew) throw conflict('Another bulk job changes this table')
      })
      runner.wake([bulkFunction])
      return id
    },
    async list(key, limit) {
      const { tables } = (await background.findParts()) ?? {}
      if (!tables) return []
      const rows = await tables.database.all<Row>(sql`SELECT ${columns} FROM ${tables.jobs}
        WHERE function = ${bulkFunction} AND unique_key = ${key} ORDER BY seq DESC LIMIT ${limit}`)
      return rows.map(storedOf)
    },
    async find(id) {
      const { tables } = (await background.findParts()) ?? {}
      if (!tables) return null
      const [row] = await tables.database.all<Row>(sql`SELECT ${columns} FROM ${tables.jobs}
        WHERE function = ${bulkFunction} AND id = ${id}`)
      return row ? storedOf(row) : null
    },
    async cancel(id) {
      const { tables } = (await background.findParts()) ?? {}
      if (!tables || !work) return false
      for (let tries = 0; tries < bulkCancelTriesMax; tries++) {
        const claim = await claimForCancel(tables, id, clock.now())
        if (!claim) return false
        // Before it is shown as canceled: no page commits after that.
        const progress = await work.fence(claim).catch((error: unknown) => {
          if (error instanceof LeaseLost) return undefined
          throw error
        })
        if (progress === undefined) continue
        const canceled = { ...claim, progress }
        if (!(await endCanceled(tables, canceled, clock.now()))) continue
        await work.recordCanceled(canceled)
        background.parts?.runner.wake([bulkFunction])
        return true
      }
      throw unavailable(1, 'The job could not be claimed')
    },
  }
}

/** Performs an attempt of a bulk job. */
export const createRunBulkJob =
  (background: Pick<Background, 'openParts'>, work: BulkWork | null): RunClaimed =>
  async (job, signal, closing) => {
    const { store } = await background.openParts()
    if (!work) throw new JobError('final', 'There are no bulk jobs')
    const { id, fence: token, input, progress, attempt } = job
    const save = (saved: string): Promise<boolean> => store.saveProgress(job, saved)
    const isLast = attempt > functionRetries
    const end = await work
      .run({ id, token, input, progress, isLast, signal, closing, save })
      .catch((error: unknown) => {
        throw error instanceof BulkFailure ? new JobError('final', error.message) : error
      })
    if (end === 'interrupted') throw new JobError('busy', 'The server closes')
  }
