/** Stored jobs: adds them, and finds what is due. `job-leases` runs them, `job-admin` is for operators. */
import type { Clock } from '../../../base/clock.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import type { NewJob } from './job.ts'
import { createJobLeases, type JobLeases, lockKeys } from './job-leases.ts'
import type { JobTables } from './migrations.ts'

export interface Enqueued {
  readonly id: string
  /** Whether the job was added: there was none with its id, and no unfinished one with its unique key. */
  readonly isNew: boolean
}

export interface JobStore extends JobLeases {
  /** Adds jobs in a transaction of the tables' database. Call `lockKeys` first if one of them has a key. */
  add(tx: Transaction, jobs: readonly NewJob[]): Promise<readonly Enqueued[]>
  /** Serializes transactions that add or finish jobs with keys. */
  lockKeys(tx: Transaction): Promise<void>
  /** Adds jobs in a transaction of their own. */
  enqueue(jobs: readonly NewJob[]): Promise<readonly Enqueued[]>
  /** When the first claimable job of each function is due; functions without one are missing. */
  dueTimes(functions: readonly string[]): Promise<ReadonlyMap<string, number>>
}

/** Terms of one statement: SQLite allows 500 in a compound one. */
const functionsPerQuery = 200

export function createJobStore(tables: JobTables, clock: Clock): JobStore {
  const { database, jobs } = tables

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
    ...createJobLeases(tables, clock),

    // Sent together, so that a remote database costs one round trip.
    add: (tx, added) => Promise.all(added.map((job) => addOne(tx, job))),

    lockKeys,

    enqueue: (added) =>
      database.write(async (tx) => {
        if (added.some(({ key }) => key !== null)) await lockKeys(tx)
        return store.add(tx, added)
      }),

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

  return store
}
