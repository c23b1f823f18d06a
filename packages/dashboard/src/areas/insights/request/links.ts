/** Where one request leads: the question in the playground, its log lines, and the same request as a command. */
import { quoted } from '../../../text/shell-argument.ts'
import type { SeenRequest } from '../requests.ts'
import type { AccessQuestion } from './requests.ts'

/** The path of the playground with the question that the rules have decided. */
export function playgroundPath({ namespace, instanceId, table, operation, caller, id, row }: AccessQuestion): string {
  const params = {
    namespace,
    instance: instanceId ?? '',
    table,
    operation,
    as: caller.kind === 'anonymous' ? 'anonymous' : `claims:${JSON.stringify(caller.auth)}`,
    id: id ?? '',
    row: row === undefined ? '' : JSON.stringify(row),
  }
  return `/rules?${new URLSearchParams(Object.entries(params).filter(([, value]) => value !== ''))}`
}

export const logsPath = (requestId: string): string => `/logs?request=${encodeURIComponent(requestId)}&level=debug`

/** The list of requests with a filter. */
export const requestsPath = (filter: Readonly<Record<string, string>> = {}): string =>
  `/insights?${new URLSearchParams({ tab: 'requests', ...filter })}`

export const requestPath = (requestId: string): string => `/insights/requests/${encodeURIComponent(requestId)}`

const credentials: readonly (readonly [caller: string, header: string])[] = [
  ['user:', '-H "Authorization: Bearer $ACCESS_TOKEN"'],
  ['service:', '-H "X-Platform-Service-Key: $PLINTH_SERVICE_KEY"'],
]

/** Credentials are never kept, so the command has variables for them; a body only where it was sampled. */
export function commandOf(
  { method, path, query, caller }: Pick<SeenRequest, 'method' | 'path' | 'query' | 'caller'>,
  body: string | null,
): string {
  const url = `${location.origin}${path}${query === '' ? '' : `?${query}`}`
  const hasBody = method !== 'GET' && method !== 'HEAD' && method !== 'DELETE'
  return [
    `curl ${method === 'GET' ? '' : `-X ${method} `}${quoted(url)}`,
    ...credentials.filter(([prefix]) => caller.startsWith(prefix)).map(([, header]) => header),
    ...(hasBody ? [`-H 'Content-Type: application/json' -d ${quoted(body ?? '{}')}`] : []),
  ].join(' \\\n  ')
}
