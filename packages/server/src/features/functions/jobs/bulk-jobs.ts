/** Stores and runs bulk jobs as jobs of a function of the platform: with their leases, retries and bounds. */
import type { Clock } from '../../../base/clock.ts'
import { createUuid7 } from '../../../base/crypto/ids.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { conflict } from '../../../errors.ts'
import { bulkJobsMax } from '../../../limits/dashboard.ts'
import { functionRetries } from '../../../limits/function-jobs.ts'
import { BulkFailure, type BulkJobs, type BulkState, type RunBulkJob, type StoredBulkJob } from '../../bulk-jobs.ts'
import type { Background } from '../background.ts'
import type { JobStatus } from './job.ts'
import { canceledError } from './job-admin.ts'
import { JobError } from './job-error.ts'
import type { RunClaimed } from './job-runner.ts'

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

export function createBulkJobs(background: Background, clock: Clock): BulkJobs {
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
      return (await (await background.findParts())?.admin.cancel(id)) === 'changed'
    },
  }
}

/** Performs an attempt of a bulk job. */
export const createRunBulkJob =
  (background: Pick<Background, 'openParts'>, run: RunBulkJob): RunClaimed =>
  async (job, signal, closing) => {
    const { store } = await background.openParts()
    const { id, input, progress, attempt } = job
    const save = (saved: string): Promise<boolean> => store.saveProgress(job, saved)
    const end = await run({ id, input, progress, isLast: attempt > functionRetries, signal, closing, save }).catch(
      (error: unknown) => {
        throw error instanceof BulkFailure ? new JobError('final', error.message) : error
      },
    )
    if (end === 'interrupted') throw new JobError('busy', 'The server closes')
  }
