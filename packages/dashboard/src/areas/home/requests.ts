/** What Home shows of the server, and the requests for it. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api } from '../../app/transport.ts'

export interface Overview {
  readonly version: string
  readonly uptimeSeconds: number
  /** What is wrong with each engine; null for nothing. */
  readonly engines: Readonly<Record<string, string | null>>
  readonly requests: {
    readonly windowSeconds: number
    readonly inFlight: number
    readonly requests: number
    readonly errors: number
    readonly p50: number | null
    readonly p95: number | null
  }
}

const overviewMs = 5_000

export const useOverview = () =>
  useQuery({
    queryKey: ['overview'],
    refetchInterval: overviewMs,
    queryFn: ({ signal }) => api.get<Overview>('/api/overview', { signal }),
  })

export interface Advice {
  readonly id: string
  readonly severity: 'high' | 'medium' | 'low'
  readonly title: string
  readonly where: string
  readonly why: string
  readonly fix: string
  readonly code: string | null
  readonly link: string | null
}

const adviceMs = 60_000

export const useAdvice = () =>
  useQuery({
    queryKey: ['advice'],
    refetchInterval: adviceMs,
    queryFn: ({ signal }) => api.get<{ readonly items: readonly Advice[] }>('/api/advice', { signal }),
  })

/** The time until which each advice is hidden from this administrator, by id. */
export type Dismissed = Readonly<Record<string, string>>

const dismissedKey = ['views', 'home', 'advice']
const viewsPath = '/api/views/home'

/** A saved view of the administrator, so that it is the same in each browser. */
export const useDismissed = () =>
  useQuery({
    queryKey: dismissedKey,
    queryFn: async ({ signal }): Promise<Dismissed> => {
      const { views } = await api.get<{
        readonly views: readonly { readonly name: string; readonly content: Dismissed }[]
      }>(viewsPath, { signal })
      return views.find(({ name }) => name === 'advice')?.content ?? {}
    },
  })

export const useDismiss = () => {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: (body: Dismissed) => api.put(`${viewsPath}/advice`, { body }),
    onSuccess: (_, body) => queries.setQueryData(dismissedKey, body),
  })
}

export interface Point {
  readonly timestamp: string
  readonly requests: number
  readonly errors: number
}

/** The last hour by minute. */
export const useLastHour = (isEnabled: boolean) =>
  useQuery({
    queryKey: ['traffic', '1h'],
    enabled: isEnabled,
    refetchInterval: adviceMs,
    queryFn: ({ signal }) =>
      api.get<{ readonly timeSeries: readonly Point[] }>('/api/analytics/query', {
        query: { range: '1h', groupBy: 'minute' },
        signal,
      }),
  })

export interface SeenRequest {
  readonly requestId: string
  readonly at: string
  readonly method: string
  readonly path: string
  readonly status: number
  readonly ms: number
}

const requestsMs = 15_000
const listed = 6

/** The latest requests of a kind: those that failed by a fault of the server, or that were slow. */
export const useSeenRequests = (filter: { readonly status?: string; readonly minMs?: string }) =>
  useQuery({
    queryKey: ['requests', 'home', filter],
    refetchInterval: requestsMs,
    queryFn: ({ signal }) =>
      api.get<{ readonly items: readonly SeenRequest[] }>('/api/requests', {
        query: { ...filter, limit: listed },
        signal,
      }),
  })
