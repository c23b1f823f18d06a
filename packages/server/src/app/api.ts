/** The API that the features form together: the endpoints of all of them, and their description. */
import type { Feature } from '../features/feature.ts'
import type { Endpoint, SocketEndpoint } from '../http/endpoint.ts'
import { mountForAdministrators, mountSocketsForAdministrators } from '../http/mounted-endpoints.ts'

export interface Api {
  readonly endpoints: readonly Endpoint[]
  readonly socketEndpoints: readonly SocketEndpoint[]
  /** The dashboard's page and endpoints, and those of the API that administrators call from it. */
  readonly dashboardEndpoints: readonly Endpoint[]
  readonly dashboardSockets: readonly SocketEndpoint[]
  /** The first path of an endpoint; null for an unknown name. */
  pathOf(name: string): string | null
}

export function createApi(features: readonly Feature[]): Api {
  const endpoints = features.flatMap((feature) => feature.endpoints)
  const socketEndpoints = features.flatMap((feature) => feature.socketEndpoints ?? [])
  const paths = new Map([
    ...endpoints.map(({ name, paths: [path = ''] }) => [name, path] as const),
    ...socketEndpoints.map(({ name, path }) => [name, path] as const),
  ])
  const dashboardEndpoints = [
    ...features.flatMap((feature) => feature.dashboardEndpoints ?? []),
    ...mountForAdministrators(endpoints),
  ]
  const dashboardSockets = mountSocketsForAdministrators(socketEndpoints)
  return { endpoints, socketEndpoints, dashboardEndpoints, dashboardSockets, pathOf: (name) => paths.get(name) ?? null }
}
