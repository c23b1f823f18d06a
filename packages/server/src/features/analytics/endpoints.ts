/** The HTTP surface of analytics: what each endpoint takes and answers. What happens is the handlers' matter. */
import { z } from 'zod'
import { type Call, type Endpoint, endpoint, type Reply } from '../../http/endpoint.ts'
import { cursorParam, limitParam, textParam, wordParam, wordParamOr } from '../../http/input/query-schema.ts'
import { eventListLimitDefault, eventListLimitMax } from '../../limits/analytics.ts'
import { requestCategories, requestMetrics } from './request-reports.ts'
import { ranges, units } from './time.ts'
import { type TrackBody, trackBody } from './track-input.ts'

export const eventMetrics = ['list', 'count', 'timeSeries', 'topEvents'] as const

/** SPEC's limits are 1 to 1,000: more is refused instead of clamped. */
const limit = limitParam({ default: eventListLimitDefault, max: eventListLimitMax, clamps: false })
const groupBy = wordParamOr(units, 'hour')
const range = wordParamOr(ranges, '24h')

const requestsQuery = z.object({
  metric: wordParamOr(requestMetrics, 'overview'),
  range,
  groupBy,
  category: wordParam(requestCategories, 'Only requests of this part of the API'),
  limit,
})

const eventsQuery = z.object({
  metric: wordParamOr(eventMetrics, 'list'),
  range,
  groupBy,
  event: textParam('Only events of this name'),
  userId: textParam('Only events of this user'),
  limit,
  cursor: cursorParam(),
})

export type TrackCall = Call<unknown, TrackBody>
export type RequestsCall = Call<z.infer<typeof requestsQuery>>
export type EventsCall = Call<z.infer<typeof eventsQuery>>

interface Handlers {
  readonly track: (call: TrackCall) => Promise<Reply>
  readonly query: (call: RequestsCall) => Promise<Reply>
  readonly events: (call: EventsCall) => Promise<Reply>
}

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
      errorRate: z.number().meta({ description: 'Share of errors, 0 to 1' }),
    }),
  ),
})

const truncated = z.literal(true).optional().meta({ description: 'Present where not all fitted into the response' })

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
/** SPEC "Versioning". */
const beta = 'Beta: what it does is settled, its form may still change.'
const scope = (): string => 'analytics:*:*:*'

export function analyticsEndpoints(handlers: Handlers): readonly Endpoint[] {
  return [
    endpoint({
      name: 'analytics.track',
      method: 'POST',
      paths: ['/api/analytics/track'],
      tag,
      summary: 'Store events',
      description: `All or none. Events belong to the user who sends them; without credentials to nobody. The answer comes when they are on disk and counted. ${beta}`,
      credentials: 'public',
      scope,
      rateLimit: 'events',
      body: trackBody,
      replies: {
        200: { description: 'Stored', schema: z.object({ ok: z.literal(true), count: z.number() }) },
      },
      errors: [403, 503],
      handle: handlers.track,
    }),
    endpoint({
      name: 'analytics.query',
      method: 'GET',
      paths: ['/api/analytics/query'],
      tag,
      summary: 'Requests in numbers',
      description: `\`overview\` gives everything; another metric gives its member, the summary, and the rest empty. Minutes, hours and days without requests are left out of the series. ${beta}`,
      credentials: 'service',
      scope,
      rateLimit: 'global',
      query: requestsQuery,
      replies: { 200: { description: 'The report', schema: report } },
      handle: handlers.query,
    }),
    endpoint({
      name: 'analytics.events',
      method: 'GET',
      paths: ['/api/analytics/events'],
      tag,
      summary: 'Events, and what there were of them',
      description: beta,
      credentials: 'service',
      scope,
      rateLimit: 'global',
      query: eventsQuery,
      replies: { 200: { description: 'The report that `metric` asks for', schema: eventReport } },
      handle: handlers.events,
    }),
  ]
}
