/**
 * The endpoints of the API that administrators call from the dashboard: the same declarations under another path, so
 * that an administrator passes the same validation and the same checks of scopes as a service key. Of the sockets,
 * those of subscriptions; rooms are for users.
 */
import type { Endpoint, SocketEndpoint } from './endpoint.ts'
import { dashboardPath } from './security/dashboard-access.ts'

/** Of the mounted endpoint, in logs and metrics. */
const namePrefix = 'dashboard:'

/** The name of the endpoint of the API that a mounted one is. */
export const mountedName = ({ name, mountedAt }: Endpoint): string =>
  mountedAt === undefined ? name : name.slice(namePrefix.length)

/** Whether a service key may do more than an anonymous caller. */
const concernsKeys = ({ credentials, scope }: Endpoint): boolean => credentials !== 'public' || scope !== undefined

/** The endpoints under `/api/` that service keys may call, mounted under the dashboard's path. */
export const mountForAdministrators = (endpoints: readonly Endpoint[]): readonly Endpoint[] =>
  endpoints
    .filter((endpoint) => concernsKeys(endpoint) && endpoint.paths.every((path) => path.startsWith('/api/')))
    .map((endpoint) => ({
      ...endpoint,
      name: `${namePrefix}${endpoint.name}`,
      paths: endpoint.paths.map((path) => `${dashboardPath}${path}`),
      mountedAt: dashboardPath,
      credentials: 'admin',
      isSecret: true,
      hidesBody: endpoint.isSecret ?? false,
    }))

export const mountSocketsForAdministrators = (endpoints: readonly SocketEndpoint[]): readonly SocketEndpoint[] =>
  endpoints
    .filter(({ kind }) => kind === 'subscriptions')
    .map((endpoint) => ({
      ...endpoint,
      name: `${namePrefix}${endpoint.name}`,
      path: `${dashboardPath}${endpoint.path}`,
      mountedAt: dashboardPath,
    }))
