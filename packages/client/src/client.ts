/** Creates clients from a URL and a list of features. */
import { Core, type CoreOptions } from './core/core.ts'
import type { Feature } from './core/feature.ts'
import type { Call, Request } from './core/transport.ts'

/** The members of a client by the feature that adds them. */
const members: Readonly<Record<string, string>> = {
  db: 'records',
  auth: 'auth',
  files: 'files',
  room: 'rooms',
  push: 'push',
  call: 'functions',
  stream: 'functions',
}

export function createClient(url: string, features: readonly Feature[], options: CoreOptions = {}): object {
  const core = new Core(url.replace(/\/+$/, ''), options)
  const client = {
    url: core.url,
    async request(method: string, path: string, { signal, timeout, query, body, headers }: Call & Request = {}) {
      return (await core.transport.send(method, path, { signal, timeout, query, body, headers })).data
    },
    close: () => core.close(),
  }
  for (const [member, feature] of Object.entries(members))
    Object.defineProperty(client, member, { configurable: true, get: () => core.part(feature) })
  for (const { name, install } of features) {
    core.parts[name] ??= {}
    Object.defineProperties(client, Object.getOwnPropertyDescriptors(install(core)))
  }
  return client
}
