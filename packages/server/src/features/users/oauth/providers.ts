/** The configured providers, each with one cached connection that all sign-ins share. */
import type { Clock } from '../../../base/clock.ts'
import type { AuthConfig, ProviderConfig } from '../../../config/sections/auth/auth.ts'
import { oauthDiscoveryMs } from '../../../limits/users.ts'
import type { OAuthConnection } from './connection.ts'

export interface OAuthProviders {
  /** Whether the configuration names the provider. */
  has(name: string): boolean
  /** Rejects if the provider is unreachable or does not match the configuration. */
  connect(name: string): Promise<OAuthConnection>
}

interface Connected {
  readonly config: ProviderConfig
  readonly sinceMs: number
  readonly connection: Promise<OAuthConnection>
}

/** Caches one connection per provider for `oauthDiscoveryMs`, or until the configuration changes. */
export function createOAuthProviders(deps: { config: () => AuthConfig; clock: Clock }): OAuthProviders {
  const { clock } = deps
  const connected = new Map<string, Connected>()
  const find = (name: string): ProviderConfig | null => {
    const { providers } = deps.config()
    return Object.hasOwn(providers, name) ? (providers[name] ?? null) : null
  }

  return {
    has: (name) => find(name) !== null,
    connect(name) {
      const config = find(name)
      if (!config) return Promise.reject(new Error('The provider is not configured'))
      const known = connected.get(name)
      if (known && known.config === config && clock.now() - known.sinceMs < oauthDiscoveryMs) return known.connection
      const connection = loadAndConnect(name, config, clock)
      const entry: Connected = { config, sinceMs: clock.now(), connection }
      connected.set(name, entry)
      // The next sign-in retries a failed connection.
      connection.catch(() => {
        if (connected.get(name) === entry) connected.delete(name)
      })
      return connection
    },
  }
}

/** Loads the library lazily, so that servers without OAuth sign-ins start faster. */
async function loadAndConnect(name: string, config: ProviderConfig, clock: Clock): Promise<OAuthConnection> {
  const { connectProvider } = await import('./connection.ts')
  return connectProvider(name, config, clock)
}
