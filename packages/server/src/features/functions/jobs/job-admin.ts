/** Jobs for operators: list, inspect, retry, cancel, pause and resume. */
import type { Clock } from '../../../base/clock.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { join, type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import {
  functionJobsFinishedKeptMs,
  functionJobsFinishedMax,
  functionJobsTrimRows,
} from '../../../limits/function-jobs.ts'
import type { JobKind, JobStatus } from './job.ts'
import { lockKeys, promoteNext } from './job-leases.ts'
import { createJobTotals, type JobCounts } from './job-totals.ts'
import type { JobTables } from './migrations.ts'

/** The error of a job that was canceled. */
export const canceledError = 'Canceled'

/** A job as it is stored; times are milliseconds since 1970. */
export interface StoredJob {
  readonly seq: number
  readonly id: string
  readonly function: string
  readonly kind: JobKind
  readonly key: string | null
  readonly status: JobStatus
  readonly attempt: number
  readonly runAtMs: number
  readonly createdAtMs: number
  readonly startedAtMs: number | null
  readonly finishedAtMs: number | null
  readonly holder: string | null
  readonly depth: number
  readonly error: string | null
}

export interface JobFilter {
  readonly function: string | null
  readonly status: JobStatus | null
  /** Only jobs that were created before the one with this number. */
  readonly before: number | null
}

/** `refused`: the job's state does not permit it. */
export type Changed = 'changed' | 'refused' | 'missing'

export interface JobAdmin extends JobCounts {
  /** The newest first. */
  list(filter: JobFilter, limit: number): Promise<readonly StoredJob[]>
  find(id: string): Promise<(StoredJob & { readonly input: string }) | null>
  /** The latest jobs of each function, the newest first. */
  latest(name: string, limit: number): Promise<readonly StoredJob[]>
  /** Runs a dead job again from its first attempt, or a failed or waiting one at once. */
  retry(id: string): Promise<Changed>
  /**
   * Makes an unfinished job dead. The attempt under way is aborted when its node renews its leases. Bulk jobs are
   * canceled by `bulk-jobs`.
   */
  cancel(id: string): Promise<Changed>
  pause(name: string): Promise<void>
  resume(name: string): Promise<void>
  paused(): Promise<ReadonlySet<string>>
  /** The ids of these that are of jobs which may run again: unfinished and dead ones. */
  findRepeatable(ids: readonly string[]): Promise<ReadonlySet<string>>
  /** Deletes finished jobs beyond age and number; starts no transaction after the signal. */
  trim(signal: AbortSignal): Promise<void>
}

const columns = sql`seq, id, function, kind, key, status, attempt, run_at, created_at, started_at, finished_at, holder, depth, error`

interface Row extends Record<string, unknown> {
  readonly id: string
  readonly function: string
  readonly kind: JobKind
  readonly key: string | null
  readonly status: JobStatus
  readonly holder: string | null
  readonly error: string | null
}

const timeOf = (value: unknown): number | null => (value === null ? null : Number(value))

const storedOf = (row: Row): StoredJob => ({
  seq: Number(row.seq),
  id: row.id,
  function: row.function,
  kind: row.kind,
  key: row.key,
  status: row.status,
  attempt: Number(row.attempt),
  runAtMs: Number(row.run_at),
  createdAtMs: Number(row.created_at),
  startedAtMs: timeOf(row.started_at),
  finishedAtMs: timeOf(row.finished_at),
  holder: row.holder,
  depth: Number(row.depth),
  error: row.error,
})

export function createJobAdmin(tables: JobTables, clock: Clock): JobAdmin {
  const { database, jobs, queues } = tables
  const { dialect } = database
  const select = async (rest: SqlText): Promise<StoredJob[]> =>
    (await database.all<Row>(sql`SELECT ${columns} FROM ${jobs} WHERE ${rest}`)).map(storedOf)

  /** Changes one job under the lock of all keys. */
  const change = (id: string, work: (tx: Transaction, job: StoredJob) => Promise<Changed>): Promise<Changed> =>
    database.write(async (tx) => {
      await lockKeys(tx)
      const [row] = await tx.all<Row>(sql`SELECT ${columns} FROM ${jobs} WHERE id = ${id}${dialect.forUpdate}`)
      return row ? work(tx, storedOf(row)) : 'missing'
    })

  return {
    list(filter, limit) {
      const conditions = [
        ...(filter.function === null ? [] : [sql`function = ${filter.function}`]),
        ...(filter.status === null ? [] : [sql`status = ${filter.status}`]),
        ...(filter.before === null ? [] : [sql`seq < ${filter.before}`]),
      ]
      const where = conditions.length === 0 ? sql`TRUE` : join(conditions, ' AND ')
      return select(sql`${where} ORDER BY seq DESC LIMIT ${limit}`)
    },
    async find(id) {
      const [row] = await database.all<Row>(sql`SELECT ${columns}, input FROM ${jobs} WHERE id = ${id}`)
      return row ? { ...storedOf(row), input: row.input as string } : null
    },
    latest: (name, limit) => select(sql`function = ${name} ORDER BY seq DESC LIMIT ${limit}`),
    retry: (id) =>
      change(id, async (tx, { status, function: name, key }) => {
        if (status === 'done' || status === 'running') return 'refused'
        const nowMs = clock.now()
        if (status !== 'dead') {
          await tx.run(sql`UPDATE ${jobs} SET run_at = ${nowMs} WHERE id = ${id}`)
          return 'changed'
        }
        const taken = await tx.all(sql`SELECT 1 FROM ${jobs} AS other, ${jobs} AS own WHERE own.id = ${id}
          AND own.unique_key IS NOT NULL AND other.function = own.function AND other.unique_key = own.unique_key
          AND other.finished_at IS NULL`)
        if (taken.length > 0) return 'refused'
        await tx.run(sql`UPDATE ${jobs} SET status = 'waiting', ready = ${key === null ? 1 : 0}, attempt = 0,
          run_at = ${nowMs}, finished_at = NULL WHERE id = ${id}`)
        if (key !== null) {
          // Before the later ones of its key that wait, also for another attempt.
          await tx.run(sql`UPDATE ${jobs} SET ready = 0 WHERE function = ${name} AND key = ${key} AND ready = 1`)
          await tx.run(promoteNext(jobs, name, key))
        }
        return 'changed'
      }),
    cancel: (id) =>
      change(id, async (tx, { status, function: name, key }) => {
        if (status === 'done' || status === 'dead') return 'refused'
        await tx.run(sql`UPDATE ${jobs} SET status = 'dead', ready = 0, fence = fence + 1, holder = NULL,
          lease_until = NULL, finished_at = ${clock.now()}, error = ${canceledError} WHERE id = ${id}`)
        if (key !== null) await tx.run(promoteNext(jobs, name, key))
        return 'changed'
      }),
    async pause(name) {
      await database.write((tx) =>
        tx.run(
          sql`INSERT INTO ${queues} (function, paused_at) VALUES (${name}, ${clock.now()}) ON CONFLICT DO NOTHING`,
        ),
      )
    },
    async resume(name) {
      await database.write((tx) => tx.run(sql`DELETE FROM ${queues} WHERE function = ${name}`))
    },
    async paused() {
      const rows = await database.all<{ function: string }>(sql`SELECT function FROM ${queues}`)
      return new Set(rows.map((row) => row.function))
    },
    ...createJobTotals(tables, clock),
    async findRepeatable(ids) {
      const rows = await database.all<{ id: string }>(
        sql`SELECT id FROM ${jobs} WHERE ${dialect.inList(sql`id`, ids, 'text')} AND status <> 'done'`,
      )
      return new Set(rows.map(({ id }) => id))
    },
    trim: (signal) => trim(tables, clock, signal),
  }
}

async function trim({ database, jobs }: JobTables, clock: Clock, signal: AbortSignal): Promise<void> {
  const finished = sql`finished_at IS NOT NULL`
  const remove = (condition: SqlText): Promise<number> =>
    database.write((tx) =>
      tx.run(sql`DELETE FROM ${jobs} WHERE seq IN (SELECT seq FROM ${jobs} WHERE ${finished} AND ${condition}
        ORDER BY finished_at, seq LIMIT ${functionJobsTrimRows})`),
    )
  const old = sql`finished_at < ${clock.now() - functionJobsFinishedKeptMs}`
  while (!signal.aborted && (await remove(old)) === functionJobsTrimRows);
  const [kept] = await database.all<{ count: unknown }>(sql`SELECT count(*) AS count FROM ${jobs} WHERE ${finished}`)
  let excess = Number(kept?.count) - functionJobsFinishedMax
  // Done jobs first: a dead one can still be retried.
  for (const status of [sql`status = 'done'`, sql`TRUE`])
    for (let removed = 1; excess > 0 && removed > 0 && !signal.aborted; excess -= removed)
      removed = await remove(status)
}
