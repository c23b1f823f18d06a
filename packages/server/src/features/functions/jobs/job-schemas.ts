/** Schemas and forms of the endpoints of jobs. */
import { z } from '../../../base/schemas/z.ts'
import type { BackgroundFunction } from '../background.ts'
import type { ScheduleTimes } from '../schedules/schedules.ts'
import { type JobStatus, jobStatuses } from './job.ts'
import type { StoredJob } from './job-admin.ts'
import type { QueueTotals } from './job-totals.ts'

export const jobSchema = z.object({
  id: z.string(),
  function: z.string(),
  kind: z.string(),
  status: z.enum(jobStatuses),
  attempt: z.int().meta({ description: 'Attempts that have begun' }),
  key: z.string().nullable().meta({ description: 'Jobs with one key run in order' }),
  runAt: z.string(),
  createdAt: z.string(),
  startedAt: z.string().nullable(),
  finishedAt: z.string().nullable(),
  error: z.string().nullable().meta({ description: 'Of the last attempt that failed' }),
})

export const scheduleSchema = z.object({
  name: z.string(),
  cron: z.string(),
  tz: z.string(),
  nextAt: z.string().nullable(),
  lastAt: z.string().nullable(),
  runs: z.array(jobSchema).meta({ description: 'The latest runs, the newest first' }),
})

export const queueSchema = z.object({
  name: z.string().meta({ description: 'The queue, or the function where it has none' }),
  function: z.string(),
  kind: z.string(),
  pausedAt: z.string().nullable(),
  counts: z.record(z.enum(jobStatuses), z.int()).meta({ description: 'Jobs that are stored, by status' }),
})

const timeOf = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString())

export const formatJob = (job: StoredJob): z.output<typeof jobSchema> => ({
  id: job.id,
  function: job.function,
  kind: job.kind,
  status: job.status,
  attempt: job.attempt,
  key: job.key,
  runAt: new Date(job.runAtMs).toISOString(),
  createdAt: new Date(job.createdAtMs).toISOString(),
  startedAt: timeOf(job.startedAtMs),
  finishedAt: timeOf(job.finishedAtMs),
  error: job.error,
})

/** By name; functions without stored jobs are included. */
export function formatQueues(
  functions: Iterable<Pick<BackgroundFunction, 'name' | 'queue' | 'kind'>>,
  { counts, pausedAtMs }: QueueTotals,
): z.output<typeof queueSchema>[] {
  const items = [...functions].map(({ name, queue, kind }) => {
    const stored = counts.filter((count) => count.function === name)
    const countOf = (status: JobStatus): number => stored.find((count) => count.status === status)?.count ?? 0
    return {
      name: queue ?? name,
      function: name,
      kind,
      pausedAt: timeOf(pausedAtMs.get(name) ?? null),
      counts: Object.fromEntries(jobStatuses.map((status) => [status, countOf(status)])) as Record<JobStatus, number>,
    }
  })
  return items.sort((one, other) => (one.name < other.name ? -1 : 1))
}

export const formatTimes = ({ nextMs, lastMs }: ScheduleTimes) => ({
  // A pattern without a further time has none that a date can express.
  nextAt: nextMs > 8.64e15 ? null : timeOf(nextMs),
  lastAt: timeOf(lastMs),
})
