/** Endpoints of the recent requests and their paths, and of the first screen of the dashboard. */

import type { ServiceCaller } from '../../../access/caller.ts'
import { permitsScope } from '../../../access/service-keys.ts'
import { z } from '../../../base/schemas/z.ts'
import { traceStages } from '../../../base/tracing/request-trace.ts'
import { ApiError, notFound } from '../../../errors.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { flagParam, integerParam, limitParam, textParam } from '../../../http/input/query-schema.ts'
import { json } from '../../../http/replies/reply.ts'
import { dashboardPath } from '../../../http/security/dashboard-access.ts'
import { overviewWindowMs, recentRequestsListed, recentRequestsMax } from '../../../limits/dashboard.ts'
import { mergeRequests, type QueryPeers } from './peer-requests.ts'
import type { FoundRequest, RecentRequests } from './recent-requests.ts'
import type { AccessQuestion } from './request-question.ts'

/** What is wrong with each engine, as a sentence; null for nothing. */
export interface EngineFaults {
  readonly sql: string | null
  readonly blobs: string | null
  readonly cluster: string | null
}

/** A clause of a rule, as explanations have it. */
interface Clause {
  readonly text: string
  readonly path: string
  readonly result: boolean | null
  readonly values: Readonly<Record<string, unknown>>
}

/** Why the rules allow or deny, by the rules and the records at the time of the question. */
export interface RequestExplanation {
  readonly allowed: boolean
  readonly verdict: number
  readonly reason: string | null
  /** Those that decide. */
  readonly clauses: readonly Clause[]
  readonly suggestions: readonly { readonly table: string; readonly fields: readonly string[] }[]
}

/** Explains for an administrator; throws `ApiError` where the question has no answer, such as for a removed table. */
export type ExplainRequest = (question: AccessQuestion, caller: ServiceCaller) => Promise<RequestExplanation>

export interface RequestEndpointsDeps {
  readonly recent: RecentRequests
  readonly queryPeers: QueryPeers
  readonly explainRequest: ExplainRequest
  readonly findFaults: () => Promise<EngineFaults>
  readonly inFlight: () => number
  readonly version: string
  readonly mode: () => 'development' | 'release'
  readonly now: () => number
}

const node = z.object({ id: z.string().meta({ description: 'Of this run of its process' }), host: z.string() })
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
  isTraced: z.boolean(),
  node,
})
const span = z.object({
  kind: z.enum(['statement', 'queue', 'commit', 'lock', 'function']),
  label: z.string().meta({ description: 'The statement without values, or the name of the function' }),
  startMs: z.number(),
  ms: z.number(),
  rows: z.number().nullable(),
  waitMs: z.number().nullable().meta({ description: 'Of a function: how much of its time it waited for a host' }),
  isFailed: z.boolean(),
})
const trace = z.object({
  stages: z.array(z.object({ stage: z.enum(traceStages), startMs: z.number(), ms: z.number() })),
  spans: z.array(span),
  dropped: z.number().meta({ description: 'Spans beyond the bound' }),
  rules: z.array(z.object({ table: z.string(), rule: z.string(), text: z.string() })),
  userAgent: z.string().nullable(),
  requestBytes: z.number().nullable(),
  responseBytes: z.number().nullable(),
  body: z.string().nullable().meta({ description: 'Without secrets and hidden fields' }),
})
const clause = z.object({
  text: z.string(),
  path: z.string(),
  result: z.boolean().nullable(),
  values: z.record(z.string(), z.unknown()),
})
const explained = request.extend({
  trace: trace.nullable().meta({ description: 'Null where the request was not sampled' }),
  access: z
    .object({
      question: z.looseObject({ namespace: z.string(), table: z.string(), operation: z.string() }),
      explanation: z
        .object({
          allowed: z.boolean(),
          verdict: z.number(),
          reason: z.string().nullable(),
          clauses: z.array(clause),
          suggestions: z.array(z.object({ table: z.string(), fields: z.array(z.string()) })),
        })
        .nullable(),
    })
    .nullable()
    .meta({ description: 'What the rules decide, with the current records; needs `dashboard:rules:*:explain`' }),
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
})
const listQuery = z.object({
  endpoint: textParam('Only requests to this endpoint, such as `records.list`'),
  caller: textParam('Only requests of this caller, as the list shows it'),
  path: textParam('Only paths that begin so'),
  status: textParam('A status, or a class such as `4xx`'),
  minMs: integerParam({ min: 0 }),
  watch: flagParam('Traces every request of the next ten seconds'),
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
    replies: { 200: { description: 'Engines and recent requests', schema: overview } },
    async handle() {
      const { recent, findFaults, inFlight, version, mode, now } = deps
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
      })
    },
  }),
  endpoint({
    ...common,
    name: 'dashboard.listRequests',
    paths: [`${dashboardPath}/api/requests`],
    summary: 'List the last requests of all nodes, newest first',
    scope: () => 'dashboard:requests:*:read',
    query: listQuery,
    replies: {
      200: {
        description: 'The requests, and the nodes that have answered, of which the first is this one',
        schema: z.object({ items: z.array(request), nodes: z.array(node) }),
      },
    },
    async handle({ query: { limit, watch, ...filter } }) {
      const answers = await deps.queryPeers({ kind: 'list', filter, limit, watch })
      return json({ items: mergeRequests(answers, limit), nodes: answers.map((answer) => answer.node) })
    },
  }),
  endpoint({
    ...common,
    name: 'dashboard.getRequest',
    paths: [`${dashboardPath}/api/requests/:requestId`],
    summary: 'Explain one of the last requests',
    description:
      'Stages, statements, functions and rules where the request was sampled: every one in development mode and while the list is watched, one of 64 otherwise, and some after a slow or a failed one of the same endpoint.',
    scope: () => 'dashboard:requests:*:read',
    replies: { 200: { description: 'The request', schema: explained } },
    errors: [404],
    async handle({ params, caller }) {
      const answers = await deps.queryPeers({ kind: 'find', requestId: params.requestId ?? '' })
      const answer = answers.find(({ found }) => found !== null)
      if (!answer?.found) throw notFound('Request')
      return json({ ...(await explain(deps, answer.found, caller as ServiceCaller)), node: answer.node })
    },
  }),
]

/** The request as this administrator may see it: values of records need the scope to read their table. */
async function explain(
  { explainRequest }: RequestEndpointsDeps,
  { request: seen, trace: path, table, question }: FoundRequest,
  caller: ServiceCaller,
) {
  const mayReadBody = table === null || permitsScope(caller.scopes, `db:table:${table}:read`)
  const mayExplain = question !== null && permitsScope(caller.scopes, 'dashboard:rules:*:explain')
  return {
    ...seen,
    trace: path && (mayReadBody ? path : { ...path, body: null }),
    access: mayExplain ? { question, explanation: await explainRequest(question, caller).catch(nullIfRefused) } : null,
  }
}

/** A table that is no longer declared, or a body that is no record: the question has no answer. */
function nullIfRefused(error: unknown): null {
  if (error instanceof ApiError) return null
  throw error
}
