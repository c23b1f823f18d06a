/** Registers the metrics of sockets and jobs. */

import type { AdmissionControl } from '../base/concurrency/admission-control.ts'
import type { Metrics } from '../http/metrics.ts'
import type { Sockets } from '../http/sockets/sockets.ts'
import type { JobCounts, Jobs } from './jobs.ts'

/** Registers the metrics of all WebSockets. */
export function registerSocketMetrics(metrics: Metrics, sockets: Sockets): void {
  metrics.gauge('sockets_open', 'Open WebSockets.', () => sockets.size)
  metrics.gauge('sockets_pending', 'Unauthenticated WebSockets.', () => sockets.pendingSize)
  metrics.counter('sockets_slow_closed_total', 'WebSockets closed as slow consumers.', () => sockets.slowCloses)
}

/** Registers the metrics of expensive requests. */
export function registerAdmissionMetrics(metrics: Metrics, admission: AdmissionControl): void {
  metrics.gauge('expensive_requests_waiting', 'Expensive requests that wait to begin.', () => admission.waiting)
  metrics.counter(
    'expensive_requests_refused_total',
    'Expensive requests refused under overload.',
    () => admission.refused,
  )
}

/** Registers the metrics of background jobs. */
export function registerJobMetrics(metrics: Metrics, { counts }: Jobs): void {
  const family = (name: string, help: string, type: 'counter' | 'gauge', of: (job: JobCounts) => number): void =>
    metrics.family({ name, help, type, label: 'job', read: () => counts.map((job) => [job.name, of(job)]) })
  family('job_runs_total', 'Job runs on this node.', 'counter', ({ runs }) => runs)
  family('job_failures_total', 'Failed job runs.', 'counter', ({ failures }) => failures)
  family('job_seconds_total', 'Total run time of jobs in seconds.', 'counter', ({ seconds }) => seconds)
  family('job_last_success_time_seconds', 'End of the last successful run in seconds since 1970.', 'gauge', (job) =>
    Math.round(job.lastSuccessMs / 1000),
  )
}
