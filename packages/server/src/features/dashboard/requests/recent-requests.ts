/**
 * The last requests of this node in memory: a ring that is bounded in number and in size. Values of query parameters
 * are kept only where their names are harmless; headers are never kept, and bodies only masked, of traced requests.
 */

import { type Caller, callerKey } from '../../../access/caller.ts'
import type { Clock } from '../../../base/clock.ts'
import { formatDatetime } from '../../../base/text/datetime.ts'
import type { StageTime, TraceRule, TraceSpan } from '../../../base/tracing/request-trace.ts'
import type { RequestRecorder, SeenRequest, TracedRequest } from '../../../http/responder.ts'
import {
  recentRequestBytes,
  recentRequestCharsMax,
  recentRequestsMax,
  tracesCharsMax,
} from '../../../limits/dashboard.ts'
import { shownBody } from './request-body.ts'
import { type AccessQuestion, accessQuestion } from './request-question.ts'
import type { Sampler } from './sampler.ts'
import { findSlowSpans, type SlowSpan } from './slow-spans.ts'
import { TextRing } from './text-ring.ts'

/** A request as administrators see it in the list. */
export interface RecentRequest {
  readonly requestId: string
  readonly at: string
  readonly method: string
  readonly path: string
  /** Values of other parameters than those of lists are replaced. */
  readonly query: string
  readonly endpoint: string
  readonly status: number
  /** Of the error; null for other responses. */
  readonly slug: string | null
  readonly message: string | null
  readonly ms: number
  /** `anonymous:…`, `user:…` or `service:…`. */
  readonly caller: string
  readonly address: string
  /** Whether it was sampled. */
  readonly isTraced: boolean
}

/** What a traced request did. */
export interface RequestPath {
  readonly stages: readonly StageTime[]
  readonly spans: readonly TraceSpan[]
  /** Spans beyond the bound. */
  readonly dropped: number
  readonly rules: readonly TraceRule[]
  readonly userAgent: string | null
  readonly requestBytes: number | null
  readonly responseBytes: number | null
  /** Masked; null without one, and for one that was too large. */
  readonly body: string | null
}

export interface FoundRequest {
  readonly request: RecentRequest
  readonly trace: RequestPath | null
  /** The table whose values the body may have; null for other endpoints. */
  readonly table: string | null
  /** What the rules decided about; null where none did. */
  readonly question: AccessQuestion | null
}

export interface RequestFilter {
  readonly endpoint?: string | undefined
  readonly caller?: string | undefined
  readonly path?: string | undefined
  /** A status, or `4xx`. */
  readonly status?: string | undefined
  readonly minMs?: number | undefined
}

/** How many requests an endpoint had, and how long they took. */
export interface RequestSummary {
  readonly requests: number
  readonly errors: number
  readonly p50: number | null
  readonly p95: number | null
}

export interface RecentRequests {
  readonly recorder: RequestRecorder
  /** Newest first. */
  list(filter: RequestFilter, limit: number): RecentRequest[]
  find(requestId: string): FoundRequest | null
  /** Of the requests since a time: how many, how many failed by the server, and the 50th and 95th percentile in ms. */
  summarize(sinceMs: number): RequestSummary
  /** What is slow in the traces. */
  slowSpans(): readonly SlowSpan[]
}

interface KeptTrace extends Omit<TracedRequest, 'body'> {
  readonly requestId: string
  readonly endpoint: string
  readonly caller: Caller
  readonly body: string | null
  readonly chars: number
}

/** Kept as JSON. */
interface Kept extends Omit<RecentRequest, 'at' | 'isTraced'> {
  readonly atMs: number
}

interface Found {
  /** Of the ring. */
  readonly slot: number
  readonly kept: Kept
}

/** Parameters whose values reveal nothing but the form of a request. */
const shownParameters: ReadonlySet<string> = new Set([
  'action',
  'after',
  'before',
  'explain',
  'fields',
  'group',
  'include',
  'limit',
  'metric',
  'namespace',
  'page',
  'perPage',
  'range',
  'sort',
  'status',
  'total',
  'upsert',
  'versions',
])

function redact(queryString: string): string {
  if (queryString === '') return ''
  let shown = ''
  for (let start = 0; start <= queryString.length && shown.length < recentRequestCharsMax; ) {
    const ampersand = queryString.indexOf('&', start)
    const end = ampersand < 0 ? queryString.length : ampersand
    const equals = queryString.indexOf('=', start)
    const name = queryString.slice(start, equals < 0 || equals > end ? end : equals)
    const pair = shownParameters.has(name) ? queryString.slice(start, end) : `${name}=…`
    shown += start === 0 ? pair : `&${pair}`
    start = end + 1
  }
  return shown.slice(0, recentRequestCharsMax)
}

const rounded = (ms: number): number => Math.round(ms * 1000) / 1000

const viewOf = ({ atMs, ...kept }: Kept, isTraced: boolean): RecentRequest => ({
  ...kept,
  at: formatDatetime(atMs),
  isTraced,
})

const pathOf = ({ trace, userAgent, requestBytes, responseBytes, body }: KeptTrace): RequestPath => ({
  stages: trace.stages.map((stage) => ({ ...stage, startMs: rounded(stage.startMs), ms: rounded(stage.ms) })),
  spans: trace.spans.map((span) => ({ ...span, startMs: rounded(span.startMs), ms: rounded(span.ms) })),
  dropped: trace.dropped,
  rules: trace.rules,
  userAgent,
  requestBytes,
  responseBytes,
  body,
})

const fits = (kept: Kept, { endpoint, caller, path, status, minMs }: RequestFilter): boolean =>
  (endpoint === undefined || kept.endpoint === endpoint) &&
  (caller === undefined || kept.caller === caller) &&
  (path === undefined || kept.path.startsWith(path)) &&
  (status === undefined || String(kept.status) === status || `${String(kept.status)[0]}xx` === status) &&
  (minMs === undefined || kept.ms >= minMs)

function summarize(requests: readonly Kept[]): RequestSummary {
  const times = requests.map(({ ms }) => ms).sort((a, b) => a - b)
  const at = (share: number): number | null =>
    times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? null
  return {
    requests: requests.length,
    errors: requests.filter(({ status }) => status >= 500).length,
    p50: at(0.5),
    p95: at(0.95),
  }
}

export interface RecentRequestsDeps {
  readonly clock: Clock
  readonly sampler: Sampler
  /** Whether a field of a table of the namespace is hidden from users. */
  readonly isHidden: (namespace: string | undefined, field: string) => boolean
}

export function createRecentRequests({ clock, sampler, isHidden }: RecentRequestsDeps): RecentRequests {
  const ring = new TextRing(recentRequestsMax, recentRequestBytes)
  /** Of sampled requests by their slot, the oldest first. */
  const traces = new Map<number, KeptTrace>()
  let chars = 0

  /** Newest first. */
  function* newest(): Generator<Found> {
    for (const { slot, text } of ring.newest()) yield { slot, kept: JSON.parse(text) }
  }

  function dropTrace(slot: number): void {
    chars -= traces.get(slot)?.chars ?? 0
    traces.delete(slot)
  }

  function keepTrace(
    slot: number,
    { requestId, endpoint, caller }: SeenRequest,
    { body, ...rest }: TracedRequest,
  ): void {
    const { namespace } = rest.params
    const shown = shownBody(endpoint, body, rest.requestBytes, (name) => isHidden(namespace, name))
    const userAgent = rest.userAgent?.slice(0, recentRequestCharsMax) ?? null
    const size = rest.trace.chars + (shown?.length ?? 0) + (userAgent?.length ?? 0)
    traces.set(slot, { ...rest, requestId, endpoint, caller, userAgent, body: shown, chars: size })
    chars += size
    for (const oldest of traces.keys()) {
      if (chars <= tracesCharsMax) break
      dropTrace(oldest)
    }
  }

  return {
    recorder: {
      begin: sampler.begin,
      record(seen) {
        sampler.ended(seen.endpoint, seen.status, seen.ms)
        // Member by member: to copy the others with a spread takes longer than all of the rest.
        const kept: Kept = {
          requestId: seen.requestId,
          method: seen.method,
          path: seen.path.slice(0, recentRequestCharsMax),
          query: redact(seen.query),
          endpoint: seen.endpoint,
          status: seen.status,
          slug: seen.slug,
          message: seen.message,
          ms: rounded(seen.ms),
          caller: callerKey(seen.caller),
          address: seen.address,
          atMs: clock.now(),
        }
        const slot = ring.add(JSON.stringify(kept))
        dropTrace(slot)
        if (seen.traced) keepTrace(slot, seen, seen.traced)
      },
    },
    list(filter, limit) {
      const found: RecentRequest[] = []
      for (const { slot, kept } of newest()) {
        if (found.length >= limit) break
        if (fits(kept, filter)) found.push(viewOf(kept, traces.has(slot)))
      }
      return found
    },
    find(requestId) {
      for (const { slot, kept } of newest()) {
        if (kept.requestId !== requestId) continue
        const of = traces.get(slot) ?? null
        const { endpoint } = kept
        return {
          request: viewOf(kept, of !== null),
          trace: of && pathOf(of),
          table: endpoint.startsWith('records.') ? (of?.params.table ?? null) : null,
          question: of && accessQuestion({ endpoint, caller: of.caller, params: of.params, body: of.body }),
        }
      }
      return null
    },
    slowSpans: () =>
      findSlowSpans(
        [...traces.values()].map(({ requestId, endpoint, trace: { spans } }) => ({ requestId, endpoint, spans })),
      ),
    summarize: (sinceMs) => summarize([...newest()].map(({ kept }) => kept).filter(({ atMs }) => atMs >= sinceMs)),
  }
}
