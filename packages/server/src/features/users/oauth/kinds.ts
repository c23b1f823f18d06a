/**
 * What is known of the providers that the configuration need only name: where they are, what they are asked for, and in
 * which way they differ from the standards. Talking to them is `oauth-connection`'s.
 */
import { importPKCS8, SignJWT } from 'jose'
import type { Clock } from '../../../base/clock.ts'
import type { ProviderConfig } from '../../../config/sections/auth/auth.ts'
import { type OAuthProfile, parseDiscordProfile, parseGithubProfile, type VerifiedClaim } from './profile.ts'

/** What is known of a provider that needs no issuer in the configuration. */
export interface OidcKind {
  readonly issuer: (config: ProviderConfig) => string
  /** Space between. */
  readonly scope: string
  /** Default `email_verified`. */
  readonly verifiedClaim?: VerifiedClaim
  /** More for the authorization endpoint. */
  readonly parameters?: Readonly<Record<string, string>>
  /** More for the token endpoint. */
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
      // The only way Apple sends anything but the code.
      parameters: { response_mode: 'form_post' },
      tokenParameters: async (config, clock) => ({ client_secret: await signAppleSecret(config, clock) }),
    },
  }),
)

/** A provider that speaks OAuth 2 without saying who somebody is; that is asked of an API of its own. */
export interface ApiKind {
  readonly issuer: string
  readonly scope: string
  readonly endpoints: { readonly authorize: string; readonly token: string; readonly user: string }
  /** `ask` gives the JSON at an address. */
  readonly fetchProfile: (userUrl: string, ask: (url: string) => Promise<unknown>) => Promise<OAuthProfile>
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
      fetchProfile: async (userUrl, ask) => parseGithubProfile(await ask(userUrl), await ask(`${userUrl}/emails`)),
    },
    discord: {
      issuer: 'https://discord.com',
      scope: 'identify email',
      endpoints: {
        authorize: 'https://discord.com/oauth2/authorize',
        token: 'https://discord.com/api/oauth2/token',
        user: 'https://discord.com/api/users/@me',
      },
      fetchProfile: async (userUrl, ask) => parseDiscordProfile(await ask(userUrl)),
    },
  }),
)

const appleSecretLifetimeSeconds = 300

/** Apple's client secret: a token about the client, signed with a key of the developer's account. */
async function signAppleSecret({ clientId, teamId, keyId, privateKey }: ProviderConfig, clock: Clock): Promise<string> {
  if (teamId === undefined || keyId === undefined || privateKey === undefined) throw new Error('Apple needs a key')
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
