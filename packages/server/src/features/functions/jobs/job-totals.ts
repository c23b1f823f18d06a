/** How many jobs are stored: in all, by queue, and unfinished ones. */
import type { Clock } from '../../../base/clock.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import type { JobStatus } from './job.ts'
import type { JobTables } from './migrations.ts'

export interface JobTotals {
  readonly byStatus: Readonly<Record<JobStatus, number>>
  /** Characters of the input of unfinished jobs. */
  readonly chars: number
  /** When the oldest due job was due; null where none is. */
  readonly dueSinceMs: number | null
}

export interface QueueTotals {
  readonly counts: readonly { readonly function: string; readonly status: JobStatus; readonly count: number }[]
  /** Milliseconds since 1970, by function. */
  readonly pausedAtMs: ReadonlyMap<string, number>
}

export interface JobCounts {
  totals(): Promise<JobTotals>
  /** The number of jobs by function and status, and since when the functions are paused. */
  queues(): Promise<QueueTotals>
  /** Unfinished jobs and the characters of their input. */
  backlog(): Promise<{ readonly jobs: number; readonly chars: number }>
}

const timeOf = (value: unknown): number | null => (value === null ? null : Number(value))

export function createJobTotals({ database, jobs, queues }: JobTables, clock: Clock): JobCounts {
  return {
    async totals() {
      const [counts, [backlog], [due]] = await Promise.all([
        database.all<{ status: JobStatus; count: unknown }>(
          sql`SELECT status, count(*) AS count FROM ${jobs} GROUP BY status`,
        ),
        database.all<{ chars: unknown }>(
          sql`SELECT coalesce(sum(chars), 0) AS chars FROM ${jobs} WHERE finished_at IS NULL`,
        ),
        database.all<{ due: unknown }>(
          sql`SELECT min(run_at) AS due FROM ${jobs} WHERE ready = 1 AND run_at <= ${clock.now()}`,
        ),
      ])
      const byStatus = { waiting: 0, running: 0, done: 0, failed: 0, dead: 0 }
      for (const { status, count } of counts) byStatus[status] = Number(count)
      return { byStatus, chars: Number(backlog?.chars), dueSinceMs: timeOf(due?.due ?? null) }
    },
    async queues() {
      const [counts, paused] = await Promise.all([
        database.all<{ function: string; status: JobStatus; count: unknown }>(
          sql`SELECT function, status, count(*) AS count FROM ${jobs} GROUP BY function, status`,
        ),
        database.all<{ function: string; paused_at: unknown }>(sql`SELECT function, paused_at FROM ${queues}`),
      ])
      return {
        counts: counts.map((row) => ({ ...row, count: Number(row.count) })),
        pausedAtMs: new Map(paused.map((row) => [row.function, Number(row.paused_at)])),
      }
    },
    async backlog() {
      const [row] = await database.all<{ jobs: unknown; chars: unknown }>(
        sql`SELECT count(*) AS jobs, coalesce(sum(chars), 0) AS chars FROM ${jobs} WHERE finished_at IS NULL`,
      )
      return { jobs: Number(row?.jobs), chars: Number(row?.chars) }
    },
  }
}
