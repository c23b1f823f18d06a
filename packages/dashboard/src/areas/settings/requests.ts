/** The access of administrators, and the audit log. */
import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query'
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
