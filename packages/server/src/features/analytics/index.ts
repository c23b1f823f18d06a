/** Analytics. Stores events, serves reports, writes the request log and rolls up old data. */

import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { codePointLength, isStorableText } from '../../base/text/text.ts'
import type { AnalyticsConfig } from '../../config/sections/analytics.ts'
import type { Sql } from '../../engines/sql/sql.ts'
import { accessDenied, authenticationRequired, invalid, invalidField } from '../../errors.ts'
import type { ResponseListener } from '../../http/handle.ts'
import { json } from '../../http/replies/reply.ts'
import { eventNameCharsMax, eventUserIdCharsMax, requestFlushMs, rollUpIntervalMs } from '../../limits/analytics.ts'
import type { Feature } from '../feature.ts'
import { analyticsEndpoints, type EventsCall, type TrackCall } from './endpoints.ts'
import { createEventReports, type EventFilter } from './event-reports.ts'
import { createIngest } from './ingest.ts'
import { prepareAnalytics } from './migrations.ts'
import { createRequestLog } from './request-log.ts'
import { categoryOfPath, createRequestReports } from './request-reports.ts'
import { createRollUp } from './retention.ts'
import { parseEvents, type TrackedEvent } from './track-input.ts'

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
  noteOf(endpoint: string): ResponseListener
}

function parseText(name: string, text: string | undefined, charsMax: number): string | null {
  if (text === undefined) return null
  if (text === '' || codePointLength(text) > charsMax || !isStorableText(text))
    throw invalidField(name, 'pattern', `must be 1 to ${charsMax} characters`)
  return text
}

const parseFilter = ({ event, userId, range }: EventsCall['query']): EventFilter => ({
  event: parseText('event', event, eventNameCharsMax),
  userId: parseText('userId', userId, eventUserIdCharsMax),
  range,
})

/** Throws if the configuration does not permit this caller or these events. */
function checkWanted({ caller }: TrackCall, events: readonly TrackedEvent[], wanted: AnalyticsConfig): void {
  if (caller.kind === 'service') return
  if (!wanted.anonymous && caller.kind === 'anonymous') throw authenticationRequired()
  if (!wanted.anonymous && caller.kind === 'user' && caller.auth.isAnonymous) throw accessDenied()
  const { events: names } = wanted
  const unknown = names === null ? [] : [...events.entries()].filter(([, { name }]) => !names.has(name))
  if (unknown.length === 0) return
  const wrong = { code: 'unknown', message: 'is not an event declared in the configuration' } as const
  throw invalid(Object.fromEntries(unknown.map(([at]) => [`events[${at}].name`, wrong])))
}

/** Creates the tables and starts the request log. Must be closed. */
export async function openAnalytics(deps: AnalyticsDeps): Promise<Analytics> {
  const { sql, config, pathOf, secret, responseBytes, clock, log } = deps
  const store = await prepareAnalytics(sql)
  const now = () => clock.now()
  const ingest = createIngest(store)
  const events = createEventReports({ store, secret, responseBytes, now })
  const reportRequests = createRequestReports({ store, responseBytes, now })
  const rollUp = createRollUp(store, now, () => ({ requests: config().requestRows, events: config().rawEvents }))
  const categories = new Map<string, string>()
  const requests = createRequestLog({
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

  async function reportEvents({ query }: EventsCall): Promise<unknown> {
    const { metric, groupBy: unit, limit } = query
    const filter = parseFilter(query)
    switch (metric) {
      case 'list':
        return events.list(filter, { limit, cursor: query.cursor ?? null })
      case 'count':
        return events.count(filter)
      case 'timeSeries':
        return events.timeSeries(filter, unit)
      case 'topEvents':
        return events.topEvents(filter, limit)
    }
  }

  return {
    name: 'analytics',
    endpoints: analyticsEndpoints({
      async track(call) {
        const nowMs = now()
        const parsed = parseEvents(call.body, call.caller, nowMs)
        checkWanted(call, parsed, config())
        await ingest.add(parsed, { isTrusted: call.caller.kind === 'service', nowMs })
        return json({ ok: true, count: parsed.length })
      },

      async query({ query }) {
        const { metric, range, groupBy: unit, category = null, limit } = query
        // Reports include every request that this node has answered.
        await requests.flush()
        return json(await reportRequests({ metric, range, unit, category, limit }))
      },

      events: async (call) => json(await reportEvents(call)),
    }),
    noteOf: requests.noteOf,

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
