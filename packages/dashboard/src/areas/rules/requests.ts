/** Explanations of access and the matrix as the API has them, and the requests for them. */
import { useQuery } from '@tanstack/react-query'
import { api } from '../../app/transport.ts'
import type { Question } from './question.ts'

export interface Clause {
  readonly text: string
  readonly path: string
  /** Null: an empty field, no record, or a field that must not be shown. */
  readonly result: boolean | null
  readonly values: Readonly<Record<string, unknown>>
}

export interface Explanation {
  readonly allowed: boolean
  readonly verdict: 200 | 401 | 403 | 404
  readonly reason: string | null
  readonly listed: boolean | null
  readonly auth: object | null
  readonly clauses: readonly Clause[]
  readonly truncated: boolean
  readonly sql: string | null
  readonly parameters: readonly unknown[]
  readonly plan: readonly string[]
  readonly suggestions: readonly { readonly table: string; readonly fields: readonly string[] }[]
}

/** Asks again whenever the view is opened: records change. */
export const useExplanation = (question: Question | null) =>
  useQuery({
    queryKey: ['rules', 'explain', question],
    enabled: question !== null,
    staleTime: 0,
    refetchOnWindowFocus: false,
    queryFn: ({ signal }) => api.post<Explanation>('/api/rules/explain', { body: question, signal }),
  })

export const matrixOperations = ['read', 'create', 'update', 'delete'] as const
export type MatrixOperation = (typeof matrixOperations)[number]

export const matrixCallers = ['anonymous', 'user', 'owner', 'otherUser', 'otherTenant'] as const
export type MatrixCaller = (typeof matrixCallers)[number]

export interface MatrixCell {
  readonly access: 'always' | 'never' | 'depends'
  readonly condition: string | null
}

export interface MatrixTable {
  readonly kind: 'table' | 'bucket'
  readonly namespace: string | null
  /** Whether the namespace has one set of tables per instance. */
  readonly hasInstances: boolean
  readonly name: string
  readonly operations: Readonly<Record<MatrixOperation, Readonly<Record<MatrixCaller, MatrixCell>>>>
  readonly reads: readonly string[]
  readonly failures: readonly string[]
}

export const useMatrix = () =>
  useQuery({
    queryKey: ['rules', 'matrix'],
    queryFn: ({ signal }) => api.get<{ readonly tables: readonly MatrixTable[] }>('/api/rules/matrix', { signal }),
  })

export interface FoundUser {
  readonly id: string
  readonly email: string | null
  readonly displayName: string | null
  readonly disabled: boolean
}

const usersPath = '/api/auth/admin/users'

/** How many users a search shows; a longer search finds the others. */
const foundMax = 6

export const useFoundUsers = (search: string, isEnabled: boolean) =>
  useQuery({
    queryKey: ['users', 'found', search],
    enabled: isEnabled,
    queryFn: ({ signal }) =>
      api.get<{ readonly users: readonly FoundUser[] }>(usersPath, {
        query: { search: search === '' ? undefined : search, limit: foundMax },
        signal,
      }),
  })

export const useUserName = (id: string, isEnabled: boolean) =>
  useQuery({
    queryKey: ['users', id, 'name'],
    enabled: isEnabled && id !== '',
    queryFn: ({ signal }) => api.get<FoundUser>(`${usersPath}/${encodeURIComponent(id)}`, { signal }),
  })
