/** What the server reports of requests and events. */
import { useQuery } from '@tanstack/react-query'
import { api } from '../../app/transport.ts'
import { given } from '../../text/given.ts'

export interface SeenRequest {
  readonly requestId: string
  readonly at: string
  readonly method: string
  readonly path: string
  readonly query: string
  readonly endpoint: string
  readonly status: number
  readonly slug: string | null
  readonly message: string | null
  readonly ms: number
  readonly caller: string
  readonly address: string
  /** Whether it was sampled. */
  readonly isTraced: boolean
  readonly node: RequestNode
}

export interface RequestNode {
  readonly id: string
  readonly host: string
}

export interface RequestFilter {
  readonly status: string
  readonly path: string
  readonly endpoint: string
  readonly caller: string
  readonly minMs: string
}

const followIntervalMs = 2000
const listedMax = 200

/** The last requests of all nodes, newest first; read again every two seconds, and traced, while `isFollowing`. */
export const useRecentRequests = (filter: RequestFilter, isFollowing: boolean) =>
  useQuery({
    queryKey: ['requests', 'list', filter],
    refetchInterval: isFollowing ? followIntervalMs : false,
    queryFn: ({ signal }) =>
      api.get<{ readonly items: readonly SeenRequest[]; readonly nodes: readonly RequestNode[] }>('/api/requests', {
        query: { limit: listedMax, ...given({ ...filter, watch: isFollowing ? '1' : '' }) },
        signal,
      }),
  })

export const ranges = ['1h', '24h', '7d', '30d', '90d'] as const
export type Range = (typeof ranges)[number]

/** The intervals in which a range is counted. */
const unitOf: Readonly<Record<Range, string>> = {
  '1h': 'minute',
  '24h': 'hour',
  '7d': 'hour',
  '30d': 'day',
  '90d': 'day',
}

export interface TrafficPoint {
  readonly timestamp: string
  readonly requests: number
  readonly errors: number
  readonly avgLatency: number
  readonly uniqueUsers: number
}

export interface Traffic {
  readonly summary: {
    readonly totalRequests: number
    readonly totalErrors: number
    readonly avgLatency: number
    readonly uniqueUsers: number
  }
  readonly timeSeries: readonly TrafficPoint[]
  readonly topItems: readonly {
    readonly label: string
    readonly count: number
    readonly avgLatency: number
    readonly errorRate: number
  }[]
}

export const useTraffic = (range: Range) =>
  useQuery({
    queryKey: ['traffic', range],
    queryFn: ({ signal }) =>
      api.get<Traffic>('/api/analytics/query', { query: { range, groupBy: unitOf[range] }, signal }),
  })

export const useEventSeries = (range: Range) =>
  useQuery({
    queryKey: ['events', 'series', range],
    queryFn: ({ signal }) =>
      api.get<{ readonly timeSeries: readonly { readonly timestamp: string; readonly count: number }[] }>(
        '/api/analytics/events',
        { query: { metric: 'timeSeries', range, groupBy: unitOf[range] }, signal },
      ),
  })

export const useTopEvents = (range: Range) =>
  useQuery({
    queryKey: ['events', 'top', range],
    queryFn: ({ signal }) =>
      api.get<{
        readonly topEvents: readonly {
          readonly eventName: string
          readonly count: number
          readonly uniqueUsers: number
        }[]
      }>('/api/analytics/events', { query: { metric: 'topEvents', range, limit: 50 }, signal }),
  })
