/** Cached answers of the server that several areas read. */
import { QueryClient, useQuery } from '@tanstack/react-query'
import { connection, fetchHealth } from './connection.ts'
import { session } from './session-store.ts'
import { useStore } from './store.ts'
import { api } from './transport.ts'

/** After this time an answer is requested again when its view is opened. */
const freshMs = 15_000

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: freshMs,
      // The client repeats reads; a refused one stays refused.
      retry: false,
      refetchOnWindowFocus: true,
      networkMode: 'always',
    },
    mutations: { retry: false, networkMode: 'always' },
  },
})

// What failed or grew old while the server was away is read again.
connection.onRecovered(() => void queryClient.invalidateQueries())

export type FieldType = 'string' | 'text' | 'number' | 'boolean' | 'json' | 'datetime' | 'geo'

export interface FieldDescription {
  readonly type: FieldType
  readonly required: boolean
  readonly unique: boolean
  readonly default?: unknown
  readonly min?: number
  readonly max?: number
  readonly pattern?: string
  readonly enum?: readonly (string | number)[]
  readonly references?: string
  /** A field of places with an index. */
  readonly index?: true
  /** Computed from other fields. */
  readonly readOnly?: true
  /** Users never receive it. */
  readonly hidden?: true
}

export interface TableDescription {
  readonly namespace: string
  readonly name: string
  /** Whether records may have fields that are not declared. */
  readonly schemaless: boolean
  readonly fields: Readonly<Record<string, FieldDescription>>
  readonly search: readonly string[]
  /** Present where searches rank by weights. */
  readonly searchOptions?: { readonly weights: Readonly<Record<string, number>> }
  readonly indexes: readonly { readonly fields: readonly string[]; readonly unique: boolean }[]
}

export interface Schema {
  readonly tables: Readonly<Record<string, TableDescription>>
  readonly namespaces: Readonly<Record<string, { readonly instance: boolean }>>
  readonly buckets: readonly string[]
  readonly rooms: Readonly<Record<string, { readonly actions: readonly string[] }>>
  readonly functions: Readonly<Record<string, unknown>>
}

const withoutHidden = (schema: Schema): Schema => ({
  ...schema,
  tables: Object.fromEntries(
    Object.entries(schema.tables).map(([name, table]) => [
      name,
      {
        ...table,
        fields: Object.fromEntries(Object.entries(table.fields).filter(([, { hidden }]) => !hidden)),
        search: table.search.filter((field) => !table.fields[field]?.hidden),
      },
    ]),
  ),
})

const entire = (schema: Schema): Schema => schema

/** Tables, namespaces, buckets, rooms and functions. While viewing as a user, without what is hidden from users. */
export function useSchema() {
  const viewing = useStore(session.current)?.viewing
  return useQuery({
    queryKey: ['schema'],
    queryFn: ({ signal }) => api.get<Schema>('/api/schema', { signal }),
    select: viewing ? withoutHidden : entire,
  })
}

export interface Health {
  readonly status: 'ok' | 'unavailable'
  readonly version: string
  readonly timestamp: string
  readonly engines?: Readonly<Record<string, 'ok' | 'unavailable'>>
  readonly reason?: string
}

const healthIntervalMs = 20_000

/** The health of the server, requested again while the page is visible. An unavailable engine is an answer too. */
export const useHealth = () =>
  useQuery({
    queryKey: ['health'],
    refetchInterval: healthIntervalMs,
    queryFn: async ({ signal }): Promise<Health> => {
      try {
        const response = await fetchHealth(signal)
        connection.reached()
        return (await response.json()) as Health
      } catch (error) {
        if (!signal.aborted) connection.lost()
        throw error
      }
    },
  })

/** A user who may open the dashboard. */
export interface Administrator {
  readonly id: string
  readonly email: string | null
  readonly displayName: string | null
  readonly dashboardRole: string | null
  readonly disabled: boolean
  readonly createdAt: string
}

/** Oldest first. */
export const useAdministrators = () =>
  useQuery({
    queryKey: ['users', 'administrators'],
    queryFn: ({ signal }) =>
      api.get<{ readonly administrators: readonly Administrator[] }>('/api/auth/admin/administrators', { signal }),
  })
