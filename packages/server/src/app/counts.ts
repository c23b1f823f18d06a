/** What `/metrics` says of the features that hold something open. */

import type { Analytics } from '../features/analytics/index.ts'
import type { Push } from '../features/push/index.ts'
import type { Rooms } from '../features/rooms/index.ts'
import type { Subscriptions } from '../features/subscriptions/index.ts'
import type { Metrics } from '../http/metrics.ts'
import type { Sockets } from '../http/sockets/sockets.ts'
import type { JobCounts, Jobs } from './jobs.ts'

/** What `/metrics` says of sockets and what they watch. */
export function countSockets(metrics: Metrics, sockets: Sockets, { delivery }: Subscriptions): void {
  metrics.gauge('sockets_open', 'WebSockets open.', () => sockets.size)
  metrics.gauge('sockets_pending', 'WebSockets that have not shown yet what they are for.', () => sockets.pendingSize)
  metrics.counter('sockets_slow_closed_total', 'WebSockets closed for not reading.', () => sockets.slowCloses)
  metrics.gauge('subscription_views', 'Distinct subscriptions.', () => delivery.sharedQueries)
  metrics.gauge('subscriptions_held', 'Subscriptions paused until their client has read.', () => delivery.paused)
}

/** What `/metrics` says of rooms. */
export function countRooms(metrics: Metrics, rooms: Rooms): void {
  metrics.gauge('rooms_loaded', 'Rooms in memory.', () => rooms.stats.rooms)
  metrics.gauge('rooms_players', 'Players in these rooms.', () => rooms.stats.players)
  metrics.gauge('rooms_connections', 'Sockets of these players.', () => rooms.stats.connections)
  metrics.counter('rooms_actions_total', 'Actions that were begun.', () => rooms.stats.actions)
  metrics.counter('rooms_deltas_total', 'Deltas that were sent.', () => rooms.stats.deltas)
  metrics.counter('rooms_saves_total', 'Saves of a room.', () => rooms.stats.saves)
  metrics.counter('rooms_failed_saves_total', 'Saves that have to be tried again.', () => rooms.stats.failedSaves)
  metrics.counter(
    'rooms_fenced_saves_total',
    'Saves refused since another node has the room.',
    () => rooms.stats.fencedSaves,
  )
}

/** What `/metrics` says of what the server does by itself. */
export function countJobs(metrics: Metrics, { counts }: Jobs): void {
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

/** What `/metrics` says of push notifications. */
export function countPush(metrics: Metrics, { stats }: Push): void {
  metrics.counter('push_sent_total', 'Messages that a provider took.', () => stats.messages.sent)
  metrics.counter('push_failed_total', 'Messages that no provider took.', () => stats.messages.failed)
  metrics.counter('push_removed_total', 'Messages to devices that are no more.', () => stats.messages.removed)
  metrics.counter('push_retries_total', 'Attempts beyond the first.', () => stats.retries)
}

/** What `/metrics` says of analytics. */
export function countAnalytics(metrics: Metrics, { stats }: Analytics): void {
  metrics.gauge('analytics_events_waiting', 'Events that are being written.', () => stats.waiting)
  metrics.counter(
    'analytics_requests_dropped_total',
    'Requests without a row of their own in the request log.',
    () => stats.dropped,
  )
}
