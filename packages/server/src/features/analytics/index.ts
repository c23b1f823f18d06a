/** Analytics. Stores events, serves reports, writes the request log and rolls up old data. */

import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { AnalyticsConfig } from '../../config/sections/analytics/analytics.ts'
import type { Sql } from '../../engines/sql/sql.ts'
import type { ResponseListener } from '../../http/responder.ts'
import { requestFlushMs, rollUpIntervalMs } from '../../limits/analytics.ts'
import type { Feature } from '../feature.ts'
import { createAnalyticsEndpoints } from './endpoints.ts'
import { createEventList } from './event-list.ts'
import { createEventReports } from './event-reports.ts'
import { Ingest } from './ingest.ts'
import { prepareAnalyticsTables } from './migrations.ts'
import { RequestLog } from './request-log.ts'
import { categoryOfPath, createRequestReports } from './request-reports.ts'
import { createRollUp } from './retention.ts'

export interface AnalyticsDeps {
  readonly sql: Sql
  readonly config: () => AnalyticsConfig
  /** The path of each endpoint by name. */
  readonly pathOf: (endpoint: string) => string | null
  /** Seals cursors. */
  readonly secret: string
  /** Largest JSON response, in bytes. */
  readonly responseBytes: () => number
  readonly clock: Clock
  readonly log: Log
}

export interface Analytics extends Feature {
  /** Returns the function to call for each request to an endpoint. */
  listenerOf(endpoint: string): ResponseListener
}

/** Creates the tables and starts the request log. Must be closed. */
export async function openAnalytics(deps: AnalyticsDeps): Promise<Analytics> {
  const { sql, config, pathOf, secret, responseBytes, clock, log } = deps
  const store = await prepareAnalyticsTables(sql)
  const now = () => clock.now()
  const ingest = new Ingest(store)
  const rollUp = createRollUp(store, now, () => ({ requests: config().requestRows, events: config().rawEvents }))
  const categories = new Map<string, string>()
  const requests = new RequestLog({
    store,
    categoryOf(endpoint) {
      const path = categories.has(endpoint) ? null : pathOf(endpoint)
      if (!categories.has(endpoint)) categories.set(endpoint, path === null ? 'other' : categoryOfPath(path))
      return categories.get(endpoint) as string
    },
    isOn: () => config().requestLog,
    now,
  })
  let isFailing = false
  /** Logs the first failure only, not two per second while the database is unavailable. */
  const flush = (): Promise<void> =>
    requests.flush().then(
      () => {
        isFailing = false
      },
      (error) => {
        if (!isFailing) log.warn('analytics.request_log_failed', { error })
        isFailing = true
      },
    )
  const flushing = setInterval(flush, requestFlushMs).unref()

  return {
    name: 'analytics',
    endpoints: createAnalyticsEndpoints({
      config,
      ingest,
      requests,
      reportRequests: createRequestReports({ store, responseBytes, now }),
      listEvents: createEventList({ store, secret, responseBytes, now }),
      eventReports: createEventReports({ store, responseBytes, now }),
      now,
    }),
    listenerOf: (endpoint) => requests.listenerOf(endpoint),
    jobs: [{ name: 'analytics.rollUp', intervalMs: rollUpIntervalMs, run: rollUp }],
    metrics(metrics) {
      metrics.gauge('analytics_events_waiting', 'Events that are being written.', () => ingest.waiting)
      const dropped = 'Requests without a row of their own in the request log.'
      metrics.counter('analytics_requests_dropped_total', dropped, () => requests.dropped)
    },

    /** Writes what was not written yet. */
    async close() {
      clearInterval(flushing)
      await flush()
    },
  }
}
