/** Endpoints of the recent requests, and of the first screen of the dashboard. */
import { z } from 'zod'
import { notFound } from '../../../errors.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { integerParam, limitParam, textParam } from '../../../http/input/query-schema.ts'
import { json } from '../../../http/replies/reply.ts'
import { dashboardPath } from '../../../http/security/dashboard-access.ts'
import { overviewWindowMs, recentRequestsListed, recentRequestsMax } from '../../../limits/dashboard.ts'
import type { RecentRequests } from './recent-requests.ts'

/** What is wrong with each engine, as a sentence; null for nothing. */
export interface EngineFaults {
  readonly sql: string | null
  readonly blobs: string | null
  readonly cluster: string | null
}

/** A setting that an operator should look at. */
export interface Advice {
  readonly kind: 'public-url' | 'mail' | 'second-factor'
  readonly message: string
}

export interface RequestEndpointsDeps {
  readonly recent: RecentRequests
  readonly findFaults: () => Promise<EngineFaults>
  readonly advise: () => readonly Advice[]
  readonly inFlight: () => number
  readonly version: string
  readonly mode: () => 'development' | 'release'
  readonly now: () => number
}

const request = z.object({
  requestId: z.string(),
  at: z.iso.datetime(),
  method: z.string(),
  path: z.string(),
  query: z.string(),
  endpoint: z.string(),
  status: z.number(),
  slug: z.string().nullable(),
  message: z.string().nullable(),
  ms: z.number(),
  caller: z.string(),
  address: z.string(),
})
const overview = z.object({
  version: z.string(),
  mode: z.enum(['development', 'release']),
  uptimeSeconds: z.number(),
  engines: z.object({ sql: z.string().nullable(), blobs: z.string().nullable(), cluster: z.string().nullable() }),
  requests: z.object({
    windowSeconds: z.number(),
    inFlight: z.number(),
    requests: z.number(),
    errors: z.number(),
    p50: z.number().nullable(),
    p95: z.number().nullable(),
  }),
  advice: z.array(z.object({ kind: z.string(), message: z.string() })),
})
const listQuery = z.object({
  endpoint: textParam('Only requests to this endpoint, such as `records.list`'),
  caller: textParam('Only requests of this caller, as the list shows it'),
  path: textParam('Only paths that begin so'),
  status: textParam('A status, or a class such as `4xx`'),
  minMs: integerParam({ min: 0 }),
  limit: limitParam({ default: recentRequestsListed, max: recentRequestsMax }),
})

const common = { method: 'GET', tag: 'Dashboard', credentials: 'admin', rateLimit: 'global', isSecret: true } as const

export const createRequestEndpoints = (deps: RequestEndpointsDeps): readonly Endpoint[] => [
  endpoint({
    ...common,
    name: 'dashboard.overview',
    paths: [`${dashboardPath}/api/overview`],
    summary: 'Get the state of this server',
    scope: () => 'dashboard:overview:*:read',
    replies: { 200: { description: 'Engines, recent requests and advice', schema: overview } },
    async handle() {
      const { recent, findFaults, advise, inFlight, version, mode, now } = deps
      return json({
        version,
        mode: mode(),
        uptimeSeconds: Math.round(process.uptime()),
        engines: await findFaults(),
        requests: {
          windowSeconds: overviewWindowMs / 1000,
          inFlight: inFlight(),
          ...recent.summarize(now() - overviewWindowMs),
        },
        advice: advise(),
      })
    },
  }),
  endpoint({
    ...common,
    name: 'dashboard.listRequests',
    paths: [`${dashboardPath}/api/requests`],
    summary: 'List the last requests of this server, newest first',
    scope: () => 'dashboard:requests:*:read',
    query: listQuery,
    replies: { 200: { description: 'The requests', schema: z.object({ items: z.array(request) }) } },
    handle: ({ query: { limit, ...filter } }) => json({ items: deps.recent.list(filter, limit) }),
  }),
  endpoint({
    ...common,
    name: 'dashboard.getRequest',
    paths: [`${dashboardPath}/api/requests/:requestId`],
    summary: 'Get one of the last requests',
    scope: () => 'dashboard:requests:*:read',
    replies: { 200: { description: 'The request', schema: request } },
    errors: [404],
    handle({ params }) {
      const found = deps.recent.find(params.requestId ?? '')
      if (!found) throw notFound('Request')
      return json(found)
    },
  }),
]
