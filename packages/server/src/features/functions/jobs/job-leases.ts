/**
 * Leases of jobs: claim, renew, finish, recover. Every statement that ends an attempt carries the fence of its claim,
 * so a holder whose lease has expired changes nothing.
 */
import type { Clock } from '../../../base/clock.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import {
  functionCrashAttempts,
  functionJobErrorCharsMax,
  functionJobLeaseMs,
  functionJobsTrimRows,
} from '../../../limits/function-jobs.ts'
import type { ClaimedJob, Finished, JobKind, Outcome, Rate } from './job.ts'
import type { JobTables } from './migrations.ts'

/** What a function's jobs are bounded by, on all nodes together. */
export interface ClaimBounds {
  readonly concurrency: number | null
  readonly rate: Rate | null
}

export interface Claimed {
  readonly jobs: readonly ClaimedJob[]
  /** When more of the function's jobs may be claimed, where its rate forbids it now. */
  readonly notBeforeMs: number | null
}

export interface JobLeases {
  /** Takes due jobs of one function, at most `limit`, for the holder. Paused functions have none. */
  claim(name: string, holder: string, limit: number, bounds: ClaimBounds): Promise<Claimed>
  /** Extends the leases of the holder's jobs; returns the ids and fences of those it still has. */
  renew(holder: string): Promise<ReadonlyMap<string, number>>
  /**
   * Saves how far an attempt has come, unless the holder has lost the job; returns whether it still has it. Earlier
   * attempts no longer count, since the job advances.
   */
  saveProgress(job: Pick<ClaimedJob, 'id' | 'fence'>, progress: string): Promise<boolean>
  /** Ends attempts; returns for each whether the holder still had the job. */
  finish(finished: readonly Finished[]): Promise<readonly boolean[]>
  /** Ends the attempts whose leases have expired: they run again, or are dead. Returns their number. */
  recover(retriesOf: (name: string) => number): Promise<number>
  /** Ends every lease: no other node runs jobs of this database. */
  expireLeases(): Promise<void>
}

interface JobRow {
  readonly id: string
  readonly function: string
  readonly kind: JobKind
  readonly key: string | null
  readonly input: string
  readonly attempt: number | string
  readonly fence: number | string
  readonly depth: number | string
  readonly created_at: number | string
  readonly progress: string | null
}

const claimed = sql`id, function, kind, key, input, attempt, fence, depth, created_at, progress`

/** The error as it is stored. */
const storedError = (error: string): string =>
  error.length > functionJobErrorCharsMax ? `${error.slice(0, functionJobErrorCharsMax - 1)}…` : error

/** Lets the first unfinished job of a key be claimed, unless another one of the key runs or may be claimed. */
export function promoteNext(jobs: SqlText, name: string, key: string): SqlText {
  const ofKey = sql`FROM ${jobs} WHERE function = ${name} AND key = ${key} AND finished_at IS NULL`
  return sql`UPDATE ${jobs} SET ready = 1 WHERE seq = (SELECT min(seq) ${ofKey})
    AND NOT EXISTS (SELECT 1 ${ofKey} AND (ready = 1 OR status = 'running'))`
}

/** Columns of an attempt that has ended. */
function endOf(outcome: Outcome, nowMs: number): SqlText {
  const end = sql`holder = NULL, lease_until = NULL`
  // `promoteNext` decides which job of the key is next.
  const again = sql`ready = CASE WHEN key IS NULL THEN 1 ELSE 0 END`
  switch (outcome.kind) {
    case 'done':
      return sql`${end}, status = 'done', ready = 0, finished_at = ${nowMs}, error = NULL`
    case 'dead':
      return sql`${end}, status = 'dead', ready = 0, finished_at = ${nowMs}, error = ${storedError(outcome.error)}`
    case 'failed':
      return sql`${end}, status = 'failed', ${again}, run_at = ${outcome.retryAtMs}, error = ${storedError(outcome.error)}`
    case 'returned':
      return sql`${end}, status = CASE WHEN attempt > 1 THEN 'failed' ELSE 'waiting' END, ${again},
        attempt = attempt - 1, run_at = ${outcome.retryAtMs}`
  }
}

/** Serializes transactions that add or finish jobs with keys. */
export const lockKeys = (tx: Transaction): Promise<void> => tx.lock('jobs keys')

export function createJobLeases(tables: JobTables, clock: Clock): JobLeases {
  const { database, jobs, queues, starts } = tables
  const { dialect } = database

  return {
    claim: (name, holder, limit, bounds) =>
      database.write(async (tx) => {
        const nowMs = clock.now()
        const room = await roomOf(tx, { tables, name, limit, nowMs, ...bounds })
        if (room.count === 0) return { jobs: [], notBeforeMs: room.notBeforeMs }
        const found =
          await tx.all<JobRow>(sql`SELECT ${claimed} FROM ${jobs} WHERE function = ${name} AND ready = 1 AND run_at <= ${nowMs}
          AND NOT EXISTS (SELECT 1 FROM ${queues} WHERE function = ${name})
          ORDER BY run_at, seq LIMIT ${room.count}${dialect.skipLocked}`)
        if (found.length === 0) return { jobs: [], notBeforeMs: room.notBeforeMs }
        const ids = found.map(({ id }) => id)
        tx.send(sql`UPDATE ${jobs} SET status = 'running', ready = 0, attempt = attempt + 1, fence = fence + 1,
          holder = ${holder}, lease_until = ${nowMs + functionJobLeaseMs}, started_at = ${nowMs}
          WHERE ${dialect.inList(sql`id`, ids, 'text')}`)
        if (bounds.rate)
          for (const _ of found) tx.send(sql`INSERT INTO ${starts} (function, at) VALUES (${name}, ${nowMs})`)
        return { jobs: found.map(claimedOf), notBeforeMs: room.notBeforeMs }
      }),

    renew: (holder) =>
      database.write(async (tx) => {
        const untilMs = clock.now() + functionJobLeaseMs
        const mine = sql`status = 'running' AND holder = ${holder}`
        await tx.run(sql`UPDATE ${jobs} SET lease_until = ${untilMs} WHERE ${mine}`)
        const found = await tx.all<{ id: string; fence: unknown }>(sql`SELECT id, fence FROM ${jobs} WHERE ${mine}`)
        return new Map(found.map(({ id, fence }) => [id, Number(fence)]))
      }),

    async saveProgress({ id, fence }, progress) {
      const changed = await database.write((tx) =>
        tx.run(sql`UPDATE ${jobs} SET progress = ${progress}, attempt = 1
          WHERE id = ${id} AND fence = ${fence} AND status = 'running'`),
      )
      return changed > 0
    },

    finish: (finished) =>
      database.write(async (tx) => {
        const nowMs = clock.now()
        if (finished.some(({ job }) => job.key !== null)) await lockKeys(tx)
        const changed = await Promise.all(
          finished.map(({ job: { id, fence }, outcome }) =>
            tx.run(sql`UPDATE ${jobs} SET ${endOf(outcome, nowMs)}
              WHERE id = ${id} AND fence = ${fence} AND status = 'running'`),
          ),
        )
        for (const { job } of finished) if (job.key !== null) tx.send(promoteNext(jobs, job.function, job.key))
        return changed.map((count) => count > 0)
      }),

    recover: (retriesOf) =>
      database.write(async (tx) => {
        const nowMs = clock.now()
        const expired = sql`status = 'running' AND lease_until <= ${nowMs}`
        const [any] = await tx.all(sql`SELECT 1 FROM ${jobs} WHERE ${expired} LIMIT 1`)
        if (!any) return 0
        await lockKeys(tx)
        const found = await tx.all<JobRow>(
          sql`SELECT ${claimed} FROM ${jobs} WHERE ${expired} ORDER BY seq LIMIT ${functionJobsTrimRows}${dialect.skipLocked}`,
        )
        const error = 'The node or the host that ran the job ended before the job did'
        for (const { id, function: name, key, attempt } of found) {
          const isOver = Number(attempt) >= Math.max(retriesOf(name) + 1, functionCrashAttempts)
          const outcome: Outcome = isOver ? { kind: 'dead', error } : { kind: 'failed', retryAtMs: nowMs, error }
          tx.send(sql`UPDATE ${jobs} SET ${endOf(outcome, nowMs)} WHERE id = ${id}`)
          if (key !== null) tx.send(promoteNext(jobs, name, key))
        }
        return found.length
      }),

    async expireLeases() {
      await database.write((tx) => tx.run(sql`UPDATE ${jobs} SET lease_until = 0 WHERE status = 'running'`))
    },
  }
}

interface RoomQuery extends ClaimBounds {
  readonly tables: JobTables
  readonly name: string
  readonly limit: number
  readonly nowMs: number
}

/** How many jobs of a function may start now. Bounds of all nodes are counted under a lock. */
async function roomOf(
  tx: Transaction,
  { tables, name, limit, nowMs, concurrency, rate }: RoomQuery,
): Promise<{ count: number; notBeforeMs: number | null }> {
  if (concurrency === null && rate === null) return { count: limit, notBeforeMs: null }
  const { jobs, starts } = tables
  await tx.lock(`jobs of ${name}`)
  let count = limit
  let notBeforeMs: number | null = null
  if (concurrency !== null) {
    const [running] = await tx.all<{ count: unknown }>(
      sql`SELECT count(*) AS count FROM ${jobs} WHERE function = ${name} AND status = 'running'`,
    )
    count = Math.min(count, Math.max(0, concurrency - Number(running?.count)))
  }
  if (rate && count > 0) {
    const sinceMs = nowMs - rate.windowMs
    await tx.run(sql`DELETE FROM ${starts} WHERE function = ${name} AND at <= ${sinceMs}`)
    const [recent] = await tx.all<{ count: unknown; first: unknown }>(
      sql`SELECT count(*) AS count, min(at) AS first FROM ${starts} WHERE function = ${name}`,
    )
    count = Math.min(count, Math.max(0, rate.count - Number(recent?.count)))
    if (count === 0) notBeforeMs = Number(recent?.first) + rate.windowMs
  }
  return { count, notBeforeMs }
}

const claimedOf = (row: JobRow): ClaimedJob => ({
  id: row.id,
  function: row.function,
  kind: row.kind,
  key: row.key,
  input: row.input,
  depth: Number(row.depth),
  // As the claim leaves them.
  attempt: Number(row.attempt) + 1,
  fence: Number(row.fence) + 1,
  createdAtMs: Number(row.created_at),
  progress: row.progress,
})
