/**
 * The providers that the configuration names, each with one connection that all sign-ins share. What a connection is,
 * and the library it needs, is `oauth-connection`'s.
 */
import type { Clock } from '../../../base/clock.ts'
import type { AuthConfig, ProviderConfig } from '../../../config/sections/auth/auth.ts'
import { oauthDiscoveryMs } from '../../../limits/users.ts'
import type { OAuthConnection } from './connection.ts'

export interface OAuthProviders {
  /** Whether the configuration names the provider. */
  has(name: string): boolean
  /** Rejects when the provider is away, or is not what the configuration says. */
  connect(name: string): Promise<OAuthConnection>
}

interface Connected {
  readonly config: ProviderConfig
  readonly sinceMs: number
  readonly connection: Promise<OAuthConnection>
}

/** Connections are kept for `oauthDiscoveryMs`, one per configured provider, until the configuration changes. */
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
      const connection = connectLate(name, config, clock)
      const entry: Connected = { config, sinceMs: clock.now(), connection }
      connected.set(name, entry)
      // One that failed is tried anew by the next who asks.
      connection.catch(() => {
        if (connected.get(name) === entry) connected.delete(name)
      })
      return connection
    },
  }
}

/** The library is loaded with the first sign-in: a server whose people have passwords starts faster without it. */
async function connectLate(name: string, config: ProviderConfig, clock: Clock): Promise<OAuthConnection> {
  const { connectProvider } = await import('./connection.ts')
  return connectProvider(name, config, clock)
}
