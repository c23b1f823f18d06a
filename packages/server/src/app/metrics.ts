/** What `/metrics` shows of sockets and jobs. */

import type { Metrics } from '../http/metrics.ts'
import type { Sockets } from '../http/sockets/sockets.ts'
import type { JobCounts, Jobs } from './jobs.ts'

/** Sockets of every feature. */
export function registerSocketMetrics(metrics: Metrics, sockets: Sockets): void {
  metrics.gauge('sockets_open', 'WebSockets open.', () => sockets.size)
  metrics.gauge('sockets_pending', 'WebSockets that have not shown yet what they are for.', () => sockets.pendingSize)
  metrics.counter('sockets_slow_closed_total', 'WebSockets closed for not reading.', () => sockets.slowCloses)
}

/** Runs of the housekeeping jobs. */
export function registerJobMetrics(metrics: Metrics, { counts }: Jobs): void {
  const family = (name: string, help: string, type: 'counter' | 'gauge', of: (job: JobCounts) => number): void =>
    metrics.family({ name, help, type, label: 'job', read: () => counts.map((job) => [job.name, of(job)]) })
  family('job_runs_total', 'Runs of a job on this node.', 'counter', ({ runs }) => runs)
  family('job_failures_total', 'Runs that failed.', 'counter', ({ failures }) => failures)
  family('job_seconds_total', 'Time that runs took.', 'counter', ({ seconds }) => seconds)
  family(
    'job_last_success_time_seconds',
    'End of the last run that did not fail, in seconds since 1970.',
    'gauge',
    (job) => Math.round(job.lastSuccessMs / 1000),
  )
}
