/** The declared stores, and the requests about their content. */
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api } from '../../app/transport.ts'

export interface VectorIndex {
  readonly name: string
  readonly dimensions: number
  readonly metric: string
  readonly metadataIndexes: readonly string[]
}

export interface Stores {
  readonly kv: readonly { readonly name: string }[]
  readonly sql: readonly { readonly name: string }[]
  readonly vector: readonly VectorIndex[]
}

export const useStores = () =>
  useQuery({ queryKey: ['stores', 'declared'], queryFn: ({ signal }) => api.get<Stores>('/api/stores', { signal }) })

export interface KvListed {
  readonly key: string
  readonly valueBytes: number
  readonly writtenAt: string
  readonly expiresAt: string | null
}

export interface KvEntry extends KvListed {
  readonly value: unknown
}

const kvPath = (namespace: string): string => `/api/kv/${encodeURIComponent(namespace)}`

export const useKvEntries = (namespace: string, prefix: string) =>
  useInfiniteQuery({
    queryKey: ['stores', 'kv', namespace, 'list', prefix],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) => {
      const query = { ...(prefix === '' ? {} : { prefix }), ...(pageParam === '' ? {} : { cursor: pageParam }) }
      return api.get<{ readonly items: readonly KvListed[]; readonly cursor: string | null }>(kvPath(namespace), {
        query,
        signal,
      })
    },
    getNextPageParam: ({ cursor }) => cursor,
  })

export const useKvEntry = (namespace: string, key: string) =>
  useQuery({
    queryKey: ['stores', 'kv', namespace, 'entry', key],
    queryFn: ({ signal }) => api.get<KvEntry>(`${kvPath(namespace)}/entry`, { query: { key }, signal }),
  })

export type KvChange =
  | { readonly action: 'set'; readonly key: string; readonly value: unknown; readonly ttl?: number }
  | { readonly action: 'delete'; readonly key: string }

/** Sets or deletes an entry, after which its namespace is read again. */
export function useKvChange(namespace: string) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: (change: KvChange) => api.post(kvPath(namespace), { body: change }),
    onSuccess: async (_, { action, key }) => {
      // The entry is gone; a request for it would be 404.
      if (action === 'delete') queries.removeQueries({ queryKey: ['stores', 'kv', namespace, 'entry', key] })
      else await queries.invalidateQueries({ queryKey: ['stores', 'kv', namespace, 'entry', key] })
      await queries.invalidateQueries({ queryKey: ['stores', 'kv', namespace, 'list'] })
    },
  })
}

export interface SqlAnswer {
  readonly results: readonly Readonly<Record<string, unknown>>[]
  readonly meta: {
    readonly changes: number
    readonly duration: number
    readonly rows_read: number
    readonly rows_written: number
  }
}

export const runStatement = (database: string, query: string): Promise<SqlAnswer> =>
  api.post(`/api/sql/${encodeURIComponent(database)}`, { body: { query } })

export interface VectorQuery {
  readonly by: { readonly vector: readonly number[] } | { readonly vectorId: string }
  readonly topK: number
  /** Null for all namespaces. */
  readonly namespace: string | null
}

export interface VectorMatch {
  readonly id: string
  readonly score: number
  readonly namespace?: string
  readonly metadata?: object | null
}

const vectorPath = (index: string): string => `/api/vector/${encodeURIComponent(index)}`

export const useVectorCount = (index: string) =>
  useQuery({
    queryKey: ['stores', 'vector', index, 'count'],
    queryFn: ({ signal }) =>
      api.post<{ readonly vectorCount: number }>(vectorPath(index), { body: { action: 'describe' }, signal }),
  })

/** The nearest vectors, best first; nothing without a query. */
export const useVectorMatches = (index: string, query: VectorQuery | null) =>
  useQuery({
    queryKey: ['stores', 'vector', index, 'matches', query],
    enabled: query !== null,
    queryFn: ({ signal }) => {
      const { by, topK, namespace } = query as VectorQuery
      const body = {
        action: 'vector' in by ? 'search' : 'queryById',
        ...by,
        topK,
        returnMetadata: true,
        ...(namespace === null ? {} : { namespace }),
      }
      return api.post<{ readonly matches: readonly VectorMatch[] }>(vectorPath(index), { body, signal })
    },
  })
