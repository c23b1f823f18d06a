/** The access of administrators, the audit log, the settings of the server, and its mails. */
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api } from '../../app/transport.ts'
import { given } from '../../text/given.ts'

/** Removes the dashboard role of an administrator, whose sessions end. */
export function useRoleRemoval() {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: (id: string) =>
      api.put(`/api/auth/admin/users/${encodeURIComponent(id)}/dashboard-role`, { body: { role: null } }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['users'] }),
  })
}

export interface AuditEntry {
  readonly id: string
  readonly at: string
  readonly actor: string
  readonly actorName: string | null
  readonly via: 'dashboard' | 'service-key'
  readonly ip: string
  readonly action: string
  readonly target: string
  readonly outcome: 'done' | 'failed' | 'unknown'
  readonly requestId: string
  readonly before: unknown
  readonly after: unknown
  readonly hash: string
}

interface AuditPage {
  readonly items: readonly AuditEntry[]
  readonly cursor: string | null
}

export interface AuditFilter {
  readonly actor: string
  readonly action: string
  readonly target: string
}

const pageSize = 50

/** Newest first. */
export const useAudit = (filter: AuditFilter) =>
  useInfiniteQuery({
    queryKey: ['audit', filter.actor, filter.action, filter.target],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) =>
      api.get<AuditPage>('/api/audit', {
        query: { limit: pageSize, ...given({ ...filter, cursor: pageParam }) },
        signal,
      }),
    getNextPageParam: ({ cursor }) => cursor,
  })

export interface Verification {
  readonly ok: boolean
  readonly entries: number
  readonly hash: string | null
  readonly broken: { readonly id: string; readonly reason: string } | null
}

export const useVerification = () => useMutation({ mutationFn: () => api.get<Verification>('/api/audit/verify') })

/** Where the entries are downloaded, in the shell: a browser cannot send the header of the page with a link. */
export const exportCommand = (filter: AuditFilter): string => {
  const query = new URLSearchParams(given({ ...filter })).toString()
  const url = `${location.origin}/api/audit/export${query === '' ? '' : `?${query}`}`
  return `curl '${url.replaceAll("'", '%27')}' -H "X-Platform-Service-Key: $PLINTH_SERVICE_KEY" -o audit.ndjson`
}

export interface Engine {
  readonly kind: string
  readonly location: string | null
}

export interface Retention {
  readonly id: string
  readonly retentionMs: number | null
  readonly bytesMax: number | null
  readonly itemsMax: number | null
  readonly per: 'server' | 'database' | 'node'
  readonly option: string | null
}

export interface ServerSettings {
  readonly project: string | null
  readonly appName: string | null
  readonly mode: 'development' | 'release'
  readonly version: string
  readonly runtime: string
  readonly publicUrl: string | null
  readonly listensOn: string
  readonly trustedProxy: string
  readonly logLevel: string
  readonly engines: { readonly sql: Engine; readonly blobs: Engine; readonly cluster: Engine; readonly mail: Engine }
  readonly dashboard: { readonly requiresMfa: boolean; readonly roles: readonly string[] }
  readonly corsOrigins: readonly string[]
  readonly limits: {
    readonly responseBytes: number
    readonly writeBytes: number
    readonly sessionsPerUser: number
    readonly passwordCharsMin: number
    readonly functionHosts: number
    readonly functionMemoryBytes: number
    readonly rateLimits: readonly { readonly group: string; readonly requests: number; readonly windowMs: number }[]
  }
  readonly retention: readonly Retention[]
}

export const useServerSettings = () =>
  useQuery({
    queryKey: ['settings', 'server'],
    queryFn: ({ signal }) => api.get<ServerSettings>('/api/settings', { signal }),
  })

export interface MailTemplates {
  readonly route: 'smtp' | 'outbox' | 'none'
  readonly from: string | null
  readonly appName: string
  readonly templates: readonly {
    readonly name: string
    readonly languages: readonly string[]
    readonly configured: readonly string[]
  }[]
}

export const useMailTemplates = () =>
  useQuery({
    queryKey: ['settings', 'mails'],
    queryFn: ({ signal }) => api.get<MailTemplates>('/api/mails', { signal }),
  })

const mailPath = (name: string): string => `/api/mails/${encodeURIComponent(name)}`

export const useMailPreview = (name: string, locale: string) =>
  useQuery({
    queryKey: ['settings', 'mails', name, locale],
    queryFn: ({ signal }) =>
      api.get<{ readonly subject: string; readonly text: string; readonly url: string }>(mailPath(name), {
        query: { locale },
        signal,
      }),
    // The frame would load again for each.
    refetchOnWindowFocus: false,
  })

/** Sends a mail with sample values to the administrator; `error` is what the mail server has answered. */
export const useTestMail = () =>
  useMutation({
    mutationFn: ({ name, language }: { readonly name: string; readonly language: string }) =>
      api.post<{ readonly to: string; readonly route: 'smtp' | 'outbox'; readonly error: string | null }>(
        `${mailPath(name)}/test`,
        { body: { locale: language } },
      ),
  })

export interface ServiceKey {
  readonly name: string
  readonly source: 'environment' | 'configuration'
  readonly scopes: readonly string[]
  readonly networks: readonly string[] | null
  readonly expiresAt: string | null
  readonly isExpired: boolean
  readonly usedAt: string | null
}

export const useServiceKeys = () =>
  useQuery({
    queryKey: ['settings', 'service-keys'],
    queryFn: ({ signal }) => api.get<{ readonly keys: readonly ServiceKey[] }>('/api/service-keys', { signal }),
  })
