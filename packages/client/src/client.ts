/** Creates clients from a URL and a list of features. */
import { Core } from './core/core.ts'
import type { Feature } from './core/feature.ts'
import type { Client } from './types/client.ts'
import type { ClientOptions } from './types/options.ts'

/** The members of a client by the feature that adds them. */
const members: Readonly<Record<PropertyKey, string>> = {
  db: 'records',
  auth: 'auth',
  files: 'files',
  room: 'rooms',
  push: 'push',
  offline: 'persist',
  call: 'functions',
  stream: 'functions',
}

/**
 * A client of the server at `url` with the listed features. `Config` is the type of the server's configuration,
 * `typeof config`, from which tables, rooms and names are typed; `Functions` the type of its functions.
 */
export function createClient<Config = unknown, Functions = unknown>(
  url: string,
  features: readonly Feature[],
  options: ClientOptions = {},
): Client<Config, Functions> {
  const core = new Core(url.replace(/\/+$/, ''), options)
  const client = {
    url: core.url,
    request: core.json.bind(core),
    close: core.close.bind(core),
  }
  for (const feature of features) Object.assign(client, feature(core))
  return new Proxy<Record<PropertyKey, unknown>>(client, {
    get: (own, member) => own[member] ?? (members[member] && core.part(members[member])),
  }) as unknown as Client<Config, Functions>
}
