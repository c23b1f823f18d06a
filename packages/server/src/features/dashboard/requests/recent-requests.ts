/**
 * The last requests of this server in memory: a ring that is bounded in number and in size. Values of query parameters
 * are kept only where their names are harmless; headers and bodies are never kept.
 */

import { callerKey } from '../../../access/caller.ts'
import type { Clock } from '../../../base/clock.ts'
import { formatDatetime } from '../../../base/text/datetime.ts'
import type { RecordRequest, SeenRequest } from '../../../http/responder.ts'
import { recentRequestCharsMax, recentRequestsMax } from '../../../limits/dashboard.ts'

/** A request as administrators see it. */
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
}

export interface RequestFilter {
  readonly endpoint?: string | undefined
  readonly caller?: string | undefined
  readonly path?: string | undefined
  /** A status, or `4xx`. */
  readonly status?: string | undefined
  readonly minMs?: number | undefined
}

export interface RecentRequests {
  readonly record: RecordRequest
  /** Newest first. */
  list(filter: RequestFilter, limit: number): RecentRequest[]
  find(requestId: string): RecentRequest | null
  /** Of the requests since a time: how many, how many failed by the server, and the 50th and 95th percentile in ms. */
  summarize(sinceMs: number): { requests: number; errors: number; p50: number | null; p95: number | null }
}

interface Kept extends SeenRequest {
  readonly atMs: number
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
  const parameters = queryString.split('&').map((pair) => {
    const name = pair.split('=', 1)[0] ?? ''
    return shownParameters.has(name) ? pair : `${name}=…`
  })
  return parameters.join('&').slice(0, recentRequestCharsMax)
}

export function createRecentRequests(clock: Clock): RecentRequests {
  const ring: Kept[] = []
  let next = 0

  /** Newest first. */
  function* newest(): Generator<Kept> {
    for (let back = 1; back <= ring.length; back++) {
      const kept = ring[(next - back + ring.length) % ring.length]
      if (kept) yield kept
    }
  }

  const viewOf = ({ atMs, caller, query, path, ...kept }: Kept): RecentRequest => ({
    ...kept,
    path: path.slice(0, recentRequestCharsMax),
    query,
    at: formatDatetime(atMs),
    caller: callerKey(caller),
    ms: Math.round(kept.ms * 1000) / 1000,
  })

  const fits = (kept: Kept, { endpoint, caller, path, status, minMs }: RequestFilter): boolean =>
    (endpoint === undefined || kept.endpoint === endpoint) &&
    (caller === undefined || callerKey(kept.caller) === caller) &&
    (path === undefined || kept.path.startsWith(path)) &&
    (status === undefined || String(kept.status) === status || `${String(kept.status)[0]}xx` === status) &&
    (minMs === undefined || kept.ms >= minMs)

  return {
    record(request) {
      ring[next] = {
        ...request,
        path: request.path.slice(0, recentRequestCharsMax),
        query: redact(request.query),
        atMs: clock.now(),
      }
      next = (next + 1) % recentRequestsMax
    },
    list(filter, limit) {
      const found: RecentRequest[] = []
      for (const kept of newest()) {
        if (found.length >= limit) break
        if (fits(kept, filter)) found.push(viewOf(kept))
      }
      return found
    },
    find(requestId) {
      for (const kept of newest()) if (kept.requestId === requestId) return viewOf(kept)
      return null
    },
    summarize(sinceMs) {
      const recent = [...newest()].filter(({ atMs }) => atMs >= sinceMs)
      const times = recent.map(({ ms }) => ms).sort((a, b) => a - b)
      const at = (share: number): number | null =>
        times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? null
      return {
        requests: recent.length,
        errors: recent.filter(({ status }) => status >= 500).length,
        p50: at(0.5),
        p95: at(0.95),
      }
    },
  }
}
