/** Registers the metrics of jobs and of the dispatcher. */
import type { Metrics } from '../../../http/metrics.ts'
import type { Background } from '../background.ts'

export function registerJobMetrics(metrics: Metrics, background: Background): void {
  const counts = () => background.parts?.runner.counts
  metrics.family({
    name: 'functions_jobs_total',
    help: 'Attempts of jobs that ended on this node by outcome; lost: canceled, or taken over by another node.',
    type: 'counter',
    label: 'outcome',
    read: () => {
      const { done = 0, failed = 0, dead = 0, lost = 0 } = counts() ?? {}
      return [
        ['done', done],
        ['failed', failed],
        ['dead', dead],
        ['lost', lost],
      ]
    },
  })
  metrics.gauge('functions_jobs_running', 'Jobs that run on this node.', () => background.parts?.runner.size ?? 0)
  metrics.gauge('functions_logs_dispatched', 'Change logs that this node reads for functions.', () => {
    return background.parts?.dispatcher.size ?? 0
  })
  metrics.gauge(
    'functions_dispatch_lag_seconds',
    'Age of the oldest change that is not a job yet, at most, in seconds.',
    () => (background.parts?.dispatcher.lagMs() ?? 0) / 1000,
  )
}
