/** Built-in knowledge about well-known providers: endpoints, scopes, and deviations from the standards. */
import type { Clock } from '../../../base/clock.ts'
import type { ProviderConfig } from '../../../config/sections/auth/auth.ts'
import { type OAuthProfile, parseDiscordProfile, parseGithubProfile, type VerifiedClaim } from './profile.ts'

/** An OpenID Connect provider that needs no issuer in the configuration. */
export interface OidcKind {
  readonly issuer: (config: ProviderConfig) => string
  /** Space-separated. */
  readonly scope: string
  /** Default `email_verified`. */
  readonly verifiedClaim?: VerifiedClaim
  /** Additional parameters of the authorization endpoint. */
  readonly parameters?: Readonly<Record<string, string>>
  /** Additional parameters of the token endpoint. */
  readonly tokenParameters?: (config: ProviderConfig, clock: Clock) => Promise<Record<string, string>>
}

export const scopeDefault = 'openid email profile'

/** By the provider's name. */
export const oidcKinds: ReadonlyMap<string, OidcKind> = new Map(
  Object.entries<OidcKind>({
    google: { issuer: () => 'https://accounts.google.com', scope: scopeDefault },
    microsoft: {
      issuer: ({ tenant = 'common' }) => `https://login.microsoftonline.com/${encodeURIComponent(tenant)}/v2.0`,
      scope: scopeDefault,
      verifiedClaim: 'xms_edov',
    },
    apple: {
      issuer: () => 'https://appleid.apple.com',
      scope: 'openid email name',
      // Apple sends the name and email scopes only by form post.
      parameters: { response_mode: 'form_post' },
      tokenParameters: async (config, clock) => ({ client_secret: await signAppleSecret(config, clock) }),
    },
  }),
)

/** An OAuth 2 provider without OpenID Connect; the profile comes from an API of its own. */
export interface ApiKind {
  readonly issuer: string
  readonly scope: string
  readonly endpoints: { readonly authorize: string; readonly token: string; readonly user: string }
  /** `fetchJson` fetches a URL and parses the response as JSON. */
  readonly fetchProfile: (userUrl: string, fetchJson: (url: string) => Promise<unknown>) => Promise<OAuthProfile>
}

/** By the provider's name. */
export const apiKinds: ReadonlyMap<string, ApiKind> = new Map(
  Object.entries<ApiKind>({
    github: {
      issuer: 'https://github.com',
      scope: 'read:user user:email',
      endpoints: {
        authorize: 'https://github.com/login/oauth/authorize',
        token: 'https://github.com/login/oauth/access_token',
        user: 'https://api.github.com/user',
      },
      fetchProfile: async (userUrl, fetchJson) =>
        parseGithubProfile(await fetchJson(userUrl), await fetchJson(`${userUrl}/emails`)),
    },
    discord: {
      issuer: 'https://discord.com',
      scope: 'identify email',
      endpoints: {
        authorize: 'https://discord.com/oauth2/authorize',
        token: 'https://discord.com/api/oauth2/token',
        user: 'https://discord.com/api/users/@me',
      },
      fetchProfile: async (userUrl, fetchJson) => parseDiscordProfile(await fetchJson(userUrl)),
    },
  }),
)

const appleSecretLifetimeSeconds = 300

/** Apple's client secret: a JWT about the client, signed with a key of the developer account. */
async function signAppleSecret({ clientId, teamId, keyId, privateKey }: ProviderConfig, clock: Clock): Promise<string> {
  if (teamId === undefined || keyId === undefined || privateKey === undefined)
    throw new Error('Apple needs teamId, keyId and privateKey in the configuration')
  const { SignJWT } = await import('jose/jwt/sign')
  const { importPKCS8 } = await import('jose/key/import')
  const nowSeconds = Math.floor(clock.now() / 1000)
  return new SignJWT()
    .setProtectedHeader({ alg: 'ES256', kid: keyId })
    .setIssuer(teamId)
    .setSubject(clientId)
    .setAudience('https://appleid.apple.com')
    .setIssuedAt(nowSeconds)
    .setExpirationTime(nowSeconds + appleSecretLifetimeSeconds)
    .sign(await importPKCS8(privateKey, 'ES256'))
}
