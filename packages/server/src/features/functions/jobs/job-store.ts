/**
 * Stored jobs: enqueue, claim, renew, finish, recover. Every statement that ends an attempt carries the fence of its
 * claim, so a holder whose lease has expired changes nothing. `job-admin` reads and changes jobs for operators.
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
import type { ClaimedJob, Finished, JobKind, NewJob, Outcome, Rate } from './job.ts'
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

export interface Enqueued {
  readonly id: string
  /** Whether the job was added: there was none with its id, and no unfinished one with its unique key. */
  readonly isNew: boolean
}

export interface JobStore {
  /** Adds jobs in a transaction of the tables' database. Call `lockKeys` first if one of them has a key. */
  add(tx: Transaction, jobs: readonly NewJob[]): Promise<readonly Enqueued[]>
  /** Serializes transactions that add or finish jobs with keys. */
  lockKeys(tx: Transaction): Promise<void>
  /** Adds jobs in a transaction of their own. */
  enqueue(jobs: readonly NewJob[]): Promise<readonly Enqueued[]>
  /** Takes due jobs of one function, at most `limit`, for the holder. Paused functions have none. */
  claim(name: string, holder: string, limit: number, bounds: ClaimBounds): Promise<Claimed>
  /** Extends the leases of the holder's jobs; returns the ids and fences of those it still has. */
  renew(holder: string): Promise<ReadonlyMap<string, number>>
  /** Ends attempts; returns for each whether the holder still had the job. */
  finish(finished: readonly Finished[]): Promise<readonly boolean[]>
  /** Ends the attempts whose leases have expired: they run again, or are dead. Returns their number. */
  recover(retriesOf: (name: string) => number): Promise<number>
  /** Ends every lease: no other node runs jobs of this database. */
  expireLeases(): Promise<void>
  /** When the first claimable job of each function is due; functions without one are missing. */
  dueTimes(functions: readonly string[]): Promise<ReadonlyMap<string, number>>
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
}

/** Terms of one statement: SQLite allows 500 in a compound one. */
const functionsPerQuery = 200

/** The error as it is stored. */
export const storedError = (error: string): string =>
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

export function createJobStore({ database, jobs, queues, starts }: JobTables, clock: Clock): JobStore {
  const { dialect } = database

  async function addOne(tx: Transaction, job: NewJob): Promise<Enqueued> {
    const { id, key, uniqueKey, input, runAtMs, depth } = job
    const isFirst =
      key === null
        ? sql`1`
        : sql`CASE WHEN EXISTS (SELECT 1 FROM ${jobs} WHERE function = ${job.function} AND key = ${key}
            AND finished_at IS NULL) THEN 0 ELSE 1 END`
    const added = await tx.run(sql`INSERT INTO ${jobs}
      (id, function, kind, key, unique_key, input, chars, status, ready, attempt, run_at, fence, depth, created_at)
      VALUES (${id}, ${job.function}, ${job.kind}, ${key}, ${uniqueKey}, ${input}, ${input.length}, 'waiting',
        ${isFirst}, 0, ${runAtMs}, 0, ${depth}, ${clock.now()}) ON CONFLICT DO NOTHING`)
    if (added > 0) return { id, isNew: true }
    const [other] = await tx.all<{ id: string }>(sql`SELECT id FROM ${jobs} WHERE id = ${id} OR (
      function = ${job.function} AND unique_key = ${uniqueKey} AND unique_key IS NOT NULL AND finished_at IS NULL)
      ORDER BY CASE WHEN id = ${id} THEN 0 ELSE 1 END LIMIT 1`)
    return { id: other?.id ?? id, isNew: false }
  }

  const store: JobStore = {
    // Sent together, so that a remote database costs one round trip.
    add: (tx, added) => Promise.all(added.map((job) => addOne(tx, job))),

    lockKeys: (tx) => tx.lock('jobs keys'),

    enqueue: (added) =>
      database.write(async (tx) => {
        if (added.some(({ key }) => key !== null)) await store.lockKeys(tx)
        return store.add(tx, added)
      }),

    claim: (name, holder, limit, bounds) =>
      database.write(async (tx) => {
        const nowMs = clock.now()
        const room = await roomOf(tx, name, limit, bounds)
        if (room.count === 0) return { jobs: [], notBeforeMs: room.notBeforeMs }
        const found = await tx.all<JobRow>(sql`SELECT id, function, kind, key, input, attempt, fence, depth, created_at
          FROM ${jobs} WHERE function = ${name} AND ready = 1 AND run_at <= ${nowMs}
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

    finish: (finished) =>
      database.write(async (tx) => {
        const nowMs = clock.now()
        if (finished.some(({ job }) => job.key !== null)) await store.lockKeys(tx)
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
        await store.lockKeys(tx)
        const found = await tx.all<JobRow>(sql`SELECT id, function, kind, key, input, attempt, fence, depth, created_at
          FROM ${jobs} WHERE ${expired} ORDER BY seq LIMIT ${functionJobsTrimRows}${dialect.skipLocked}`)
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

    async dueTimes(functions) {
      const due = new Map<string, number>()
      for (let at = 0; at < functions.length; at += functionsPerQuery) {
        const each = functions
          .slice(at, at + functionsPerQuery)
          .map(
            (name) =>
              sql`SELECT CAST(${name} AS TEXT) AS name, (SELECT min(run_at) FROM ${jobs} WHERE function = ${name} AND ready = 1) AS due`,
          )
        const rows = await database.all<{ name: string; due: unknown }>(
          each.reduce((all, one) => sql`${all} UNION ALL ${one}`),
        )
        for (const row of rows) if (row.due !== null) due.set(row.name, Number(row.due))
      }
      return due
    },
  }

  /** How many jobs of a function may start now. Bounds of all nodes are counted under a lock. */
  async function roomOf(
    tx: Transaction,
    name: string,
    limit: number,
    { concurrency, rate }: ClaimBounds,
  ): Promise<{ count: number; notBeforeMs: number | null }> {
    if (concurrency === null && rate === null) return { count: limit, notBeforeMs: null }
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
      const sinceMs = clock.now() - rate.windowMs
      await tx.run(sql`DELETE FROM ${starts} WHERE function = ${name} AND at <= ${sinceMs}`)
      const [recent] = await tx.all<{ count: unknown; first: unknown }>(
        sql`SELECT count(*) AS count, min(at) AS first FROM ${starts} WHERE function = ${name}`,
      )
      count = Math.min(count, Math.max(0, rate.count - Number(recent?.count)))
      if (count === 0) notBeforeMs = Number(recent?.first) + rate.windowMs
    }
    return { count, notBeforeMs }
  }

  return store
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
})
