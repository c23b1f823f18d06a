/** Users as the API for administrators shows them, and the requests about them. */
import { type QueryKey, useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api } from '../../app/transport.ts'

export interface ListedUser {
  readonly id: string
  readonly email: string | null
  readonly displayName: string | null
  readonly role: string
  readonly emailVerified: boolean
  readonly disabled: boolean
  readonly isAnonymous: boolean
  readonly createdAt: string
  readonly updatedAt: string
}

export interface User extends ListedUser {
  readonly locale: string | null
  readonly metadata: object
  readonly appMetadata: object
  readonly customClaims: object
}

export interface UserSession {
  readonly id: string
  readonly createdAt: string
  readonly lastUsedAt: string
  readonly expiresAt: string
  readonly userAgent: string | null
  readonly address: string | null
}

export interface Credentials {
  readonly hasPassword: boolean
  readonly sessions: readonly UserSession[]
  readonly identities: readonly {
    readonly id: string
    readonly provider: string
    readonly email: string | null
    readonly createdAt: string
  }[]
  readonly passkeys: readonly {
    readonly id: string
    readonly name: string
    readonly createdAt: string
    readonly lastUsedAt: string | null
  }[]
  readonly factor: { readonly createdAt: string } | null
  readonly recoveryCodesLeft: number
}

interface UserPage {
  readonly users: readonly ListedUser[]
  readonly cursor: string | null
}

const path = '/api/auth/admin/users'
const pathOf = (id: string): string => `${path}/${encodeURIComponent(id)}`
const pageSize = 50

/** Newest first; with `search`, one page of those that it finds. */
export const useUsers = (search: string) =>
  useInfiniteQuery({
    queryKey: ['users', 'list', search],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) => {
      const query = {
        limit: pageSize,
        ...(search === '' ? {} : { search }),
        ...(pageParam === '' ? {} : { cursor: pageParam }),
      }
      return api.get<UserPage>(path, { query, signal })
    },
    getNextPageParam: ({ cursor }) => cursor,
  })

export const useUser = (id: string) =>
  useQuery({ queryKey: ['users', id], queryFn: ({ signal }) => api.get<User>(pathOf(id), { signal }) })

export const useCredentials = (id: string) =>
  useQuery({
    queryKey: ['users', id, 'credentials'],
    queryFn: ({ signal }) => api.get<Credentials>(`${pathOf(id)}/credentials`, { signal }),
  })

interface StoredFiles {
  readonly buckets: readonly {
    readonly bucket: string
    readonly files: number
    readonly bytes: number
    readonly userQuotaBytes: number | null
  }[]
}

/** What a user stores, by bucket. */
export const useStoredFiles = (id: string) =>
  useQuery({
    queryKey: ['users', id, 'files'],
    queryFn: ({ signal }) => api.get<StoredFiles>(`/api/storage-usage/users/${encodeURIComponent(id)}`, { signal }),
  })

/** A change, after which everything about users is read again. */
export function useUserChange<Input, Output>(send: (input: Input) => Promise<Output>) {
  const queries = useQueryClient()
  const key: QueryKey = ['users']
  return useMutation({ mutationFn: send, onSuccess: () => queries.invalidateQueries({ queryKey: key }) })
}

/** Deletes a user and forgets the answers about it; `onDeleted` leaves the page of the user before they are gone. */
export function useUserDeletion(id: string, onDeleted: () => void): () => Promise<void> {
  const queries = useQueryClient()
  return async () => {
    await api.delete(pathOf(id))
    onDeleted()
    queries.removeQueries({ queryKey: ['users', id] })
    await queries.invalidateQueries({ queryKey: ['users', 'list'] })
  }
}

export interface NewUser {
  readonly email: string
  readonly displayName?: string
  readonly role?: string
  readonly password?: string
}

/** With a password the user is created, without one invited by mail. */
export const createUser = (user: NewUser): Promise<{ readonly user: User }> =>
  api.post(user.password === undefined ? '/api/auth/admin/invitations' : path, { body: user })

/** What became of one user of an import. */
export interface Outcome {
  readonly id: string | null
  readonly email: string | null
  readonly status: 'created' | 'skipped' | 'error'
  readonly error?: string
}

export interface Report {
  readonly imported: number
  readonly skipped: number
  readonly errors: number
  readonly results: readonly Outcome[]
}

/** Users per request: passwords are hashed meanwhile, within the time of a request. */
const importedAtOnce = 200

/** Imports users in several requests; `onProgress` gets the number of those that are done. */
export async function importUsers(users: readonly object[], onProgress: (done: number) => void): Promise<Report> {
  let report: Report = { imported: 0, skipped: 0, errors: 0, results: [] }
  for (let from = 0; from < users.length; from += importedAtOnce) {
    onProgress(from)
    const part = users.slice(from, from + importedAtOnce)
    const { imported, skipped, errors, results } = await api.post<Report>(`${path}/import`, { body: { users: part } })
    report = {
      imported: report.imported + imported,
      skipped: report.skipped + skipped,
      errors: report.errors + errors,
      results: [...report.results, ...results.filter(({ status }) => status === 'error')],
    }
  }
  return report
}

export const updateUser = (id: string, changes: object): Promise<User> => api.patch(pathOf(id), { body: changes })
export const setClaims = (id: string, claims: object): Promise<unknown> =>
  api.put(`${pathOf(id)}/claims`, { body: claims })
export const setDashboardRole = (id: string, role: string | null): Promise<unknown> =>
  api.put(`${pathOf(id)}/dashboard-role`, { body: { role } })
export const endSessions = (id: string): Promise<unknown> => api.post(`${pathOf(id)}/revoke`)
export const endSession = (id: string, sessionId: string): Promise<unknown> =>
  api.delete(`${pathOf(id)}/sessions/${encodeURIComponent(sessionId)}`)
export const removeFactors = (id: string): Promise<unknown> => api.delete(`${pathOf(id)}/mfa`)
