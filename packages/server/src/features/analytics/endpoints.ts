/** HTTP endpoints of analytics. */
import { z } from '../../base/schemas/z.ts'
import type { AnalyticsConfig } from '../../config/sections/analytics/analytics.ts'
import { type Endpoint, endpoint } from '../../http/endpoint.ts'
import { cursorParam, limitParam, textParam, wordParam, wordParamOr } from '../../http/input/query-schema.ts'
import { json } from '../../http/replies/reply.ts'
import { eventListLimitDefault, eventListLimitMax } from '../../limits/analytics.ts'
import { parseEventFilter } from './event-filter.ts'
import type { ListEvents } from './event-list.ts'
import type { EventReports } from './event-reports.ts'
import type { Ingest } from './ingest.ts'
import type { RequestLog } from './request-log.ts'
import { type ReportRequests, requestCategories, requestMetrics } from './request-reports.ts'
import { ranges, units } from './time.ts'
import { checkPermitted, parseEvents, trackBody } from './track-input.ts'

const eventMetrics = ['list', 'count', 'timeSeries', 'topEvents'] as const

/** The limit is 1 to 1,000; larger values are rejected, not clamped. */
const limit = limitParam({ default: eventListLimitDefault, max: eventListLimitMax, clamps: false })
const groupBy = wordParamOr(units, 'hour')
const range = wordParamOr(ranges, '24h')

const requestsQuery = z.object({
  metric: wordParamOr(requestMetrics, 'overview'),
  range,
  groupBy,
  category: wordParam(requestCategories, 'Only requests to this part of the API'),
  limit,
})

const eventsQuery = z.object({
  metric: wordParamOr(eventMetrics, 'list'),
  range,
  groupBy,
  event: textParam('Only events with this name'),
  userId: textParam('Only events of this user'),
  limit,
  cursor: cursorParam(),
})

const report = z.object({
  summary: z.object({
    totalRequests: z.number(),
    totalErrors: z.number(),
    avgLatency: z.number().meta({ description: 'Milliseconds' }),
    uniqueUsers: z.number(),
  }),
  timeSeries: z.array(
    z.object({
      timestamp: z.string(),
      requests: z.number(),
      errors: z.number(),
      avgLatency: z.number(),
      uniqueUsers: z.number(),
    }),
  ),
  breakdown: z.array(z.object({ label: z.string(), count: z.number(), percentage: z.number() })),
  topItems: z.array(
    z.object({
      label: z.string(),
      count: z.number(),
      avgLatency: z.number(),
      errorRate: z.number().meta({ description: 'Fraction of failed requests, 0 to 1' }),
    }),
  ),
})

const truncated = z
  .literal(true)
  .optional()
  .meta({ description: 'Present if the result was truncated to fit into the response' })

const eventReport = z.union([
  z.object({
    events: z.array(
      z.object({
        id: z.string(),
        timestamp: z.string(),
        userId: z.string().nullable(),
        eventName: z.string(),
        properties: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
      }),
    ),
    cursor: z.string().nullable(),
    hasMore: z.boolean(),
    truncated,
  }),
  z.object({ totalEvents: z.number(), uniqueUsers: z.number() }),
  z.object({ timeSeries: z.array(z.object({ timestamp: z.string(), count: z.number() })) }),
  z.object({
    topEvents: z.array(z.object({ eventName: z.string(), count: z.number(), uniqueUsers: z.number() })),
    truncated,
  }),
])

const tag = 'Analytics'
/** Beta endpoints follow the versioning policy for unstable response formats. */
const beta = 'Beta: the behavior is stable; the format may still change.'
const readScope = (): string => 'analytics:*:*:read'
const writeScope = (): string => 'analytics:*:*:write'

export interface AnalyticsEndpointDeps {
  readonly config: () => AnalyticsConfig
  readonly ingest: Ingest
  readonly requests: RequestLog
  readonly reportRequests: ReportRequests
  readonly listEvents: ListEvents
  readonly eventReports: EventReports
  readonly now: () => number
}

export function createAnalyticsEndpoints(deps: AnalyticsEndpointDeps): readonly Endpoint[] {
  const { config, ingest, requests, reportRequests, listEvents, eventReports, now } = deps
  return [
    endpoint({
      name: 'analytics.track',
      method: 'POST',
      paths: ['/api/analytics/track'],
      tag,
      summary: 'Store events',
      description: `Stores all events or none. Events are attributed to the user who sends them; without credentials they are anonymous. The response is sent after they are durable and counted. ${beta}`,
      credentials: 'public',
      scope: writeScope,
      rateLimit: 'events',
      body: trackBody,
      // Events are data of the application, in numbers beyond what an audit is for.
      changes: false,
      replies: {
        200: { description: 'Stored', schema: z.object({ ok: z.literal(true), count: z.number() }) },
      },
      errors: [403, 503],
      async handle({ body, caller }) {
        const nowMs = now()
        const events = parseEvents(body, caller, nowMs)
        checkPermitted(events, caller, config())
        await ingest.add(events, { isTrusted: caller.kind === 'service', nowMs })
        return json({ ok: true, count: events.length })
      },
    }),
    endpoint({
      name: 'analytics.query',
      isExpensive: true,
      method: 'GET',
      paths: ['/api/analytics/query'],
      tag,
      summary: 'Get request statistics',
      description: `\`overview\` returns all members; any other metric returns the summary and its own member, and leaves the others empty. Time series omit intervals without requests. ${beta}`,
      credentials: 'service',
      scope: readScope,
      rateLimit: 'global',
      query: requestsQuery,
      replies: { 200: { description: 'The report', schema: report } },
      async handle({ query }) {
        const { metric, range, groupBy: unit, category = null, limit } = query
        // Reports include every request that this node has answered.
        await requests.flush()
        return json(await reportRequests({ metric, range, unit, category, limit }))
      },
    }),
    endpoint({
      name: 'analytics.events',
      isExpensive: true,
      method: 'GET',
      paths: ['/api/analytics/events'],
      tag,
      summary: 'List events or get event statistics',
      description: beta,
      credentials: 'service',
      scope: readScope,
      rateLimit: 'global',
      query: eventsQuery,
      replies: { 200: { description: 'The report selected by `metric`', schema: eventReport } },
      async handle({ query }) {
        const { metric, groupBy: unit, limit, cursor = null } = query
        const filter = parseEventFilter(query)
        switch (metric) {
          case 'list':
            return json(await listEvents(filter, { limit, cursor }))
          case 'count':
            return json(await eventReports.count(filter))
          case 'timeSeries':
            return json(await eventReports.timeSeries(filter, unit))
          case 'topEvents':
            return json(await eventReports.topEvents(filter, limit))
        }
      },
    }),
  ]
}
