/** The API that the features form together: the endpoints of all of them, and their description. */
import type { Feature } from '../features/feature.ts'
import type { Endpoint, SocketEndpoint } from '../http/endpoint.ts'

export interface Api {
  readonly endpoints: readonly Endpoint[]
  readonly socketEndpoints: readonly SocketEndpoint[]
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
  return { endpoints, socketEndpoints, pathOf: (name) => paths.get(name) ?? null }
}
