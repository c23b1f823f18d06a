/**
 * Talking to a provider: what it is asked, and how its answer is checked. The checks themselves (state, issuer,
 * audience, nonce, signature against the issuer's published keys) are `openid-client`'s; which providers there are is
 * `oauth-providers`', what a flow is and who may start one `oauth-flow`'s.
 */
import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  Configuration,
  type CustomFetch,
  calculatePKCECodeChallenge,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  None,
} from 'openid-client'
import type { Clock } from '../../../base/clock.ts'
import type { ProviderConfig } from '../../../config/sections/auth/auth.ts'
import { createBoundedFetch, isLoopback, isProviderUrl } from '../../../engines/fetch/bounded-fetch.ts'
import { oauthFetchTimeoutMs, oauthResponseBytesMax } from '../../../limits/users.ts'
import { type ApiKind, apiKinds, type OidcKind, oidcKinds, scopeDefault } from './kinds.ts'
import { findAppleName, type OAuthProfile, parseOidcProfile } from './profile.ts'

/** What ties a provider's answer to the question it answers. */
export interface AuthorizationRequest {
  /** Where the provider sends the browser back to. */
  readonly callbackUrl: string
  readonly state: string
  readonly nonce: string
  /** PKCE: the secret whose hash the provider was told. */
  readonly verifier: string
}

/** The parameters a provider sends the browser back with. */
export interface AuthorizationResponse {
  readonly code?: string | undefined
  readonly state?: string | undefined
  readonly iss?: string | undefined
  /** What Apple says of a person the first time, as JSON; not signed, so good for a name and nothing else. */
  readonly user?: string | undefined
}

/** A provider whose endpoints and keys are known. */
export interface OAuthConnection {
  /** Where to send the browser. */
  authorizationUrl(question: AuthorizationRequest): Promise<string>
  /** Exchanges the code and asks who it is. Rejects, for many reasons, when the answer is not believed. */
  fetchProfile(question: AuthorizationRequest, answer: AuthorizationResponse): Promise<OAuthProfile>
}

const boundedFetch = createBoundedFetch({ timeoutMs: oauthFetchTimeoutMs, bytesMax: oauthResponseBytesMax })
/** As the library calls it. */
const fetchForClient: CustomFetch = (url, options) =>
  boundedFetch(url, { ...options, body: (options.body ?? null) as BodyInit | null })

/** Rejects when the provider is away, or is not what the configuration says. */
export async function connectProvider(name: string, config: ProviderConfig, clock: Clock): Promise<OAuthConnection> {
  const api = apiKinds.get(name)
  return api ? connectApi(api, config) : connectOidc(oidcKinds.get(name), config, clock)
}

async function connectOidc(kind: OidcKind | undefined, config: ProviderConfig, clock: Clock): Promise<OAuthConnection> {
  const issuer = config.issuer ?? kind?.issuer(config)
  if (issuer === undefined) throw new Error('The provider has no issuer')
  const { clientId, clientSecret } = config
  const options = {
    // Without it the token would be believed because of where it came from.
    execute: [enableNonRepudiationChecks, ...(isLoopback(issuer) ? [allowInsecureRequests] : [])],
    [customFetch]: fetchForClient,
  }
  const authentication = clientSecret === undefined ? None() : authenticateBy(clientSecret)
  const client = await discovery(new URL(issuer), clientId, undefined, authentication, options)
  const { authorization_endpoint, token_endpoint, jwks_uri } = client.serverMetadata()
  requireProviderUrls(authorization_endpoint, token_endpoint, jwks_uri)
  const scope = config.scopes?.join(' ') ?? kind?.scope ?? scopeDefault
  return {
    authorizationUrl: (question) => authorizationUrlOf(client, question, scope, kind?.parameters),
    async fetchProfile(question, answer) {
      const parameters = await kind?.tokenParameters?.(config, clock)
      const checks = { expectedNonce: question.nonce, idTokenExpected: true }
      const tokens = await exchange(client, question, answer, checks, parameters)
      const claims = tokens.claims()
      if (!claims) throw new Error('The provider sent no ID token')
      const asksMore = claims.email === undefined && client.serverMetadata().userinfo_endpoint !== undefined
      const more = asksMore ? await fetchUserInfo(client, tokens.access_token, claims.sub) : {}
      const profile = parseOidcProfile({ ...more, ...claims }, kind?.verifiedClaim)
      return { ...profile, displayName: profile.displayName ?? findAppleName(answer.user) }
    },
  }
}

async function connectApi(kind: ApiKind, config: ProviderConfig): Promise<OAuthConnection> {
  const { authorize = kind.endpoints.authorize, token = kind.endpoints.token } = config.endpoints ?? {}
  const userUrl = config.endpoints?.user ?? kind.endpoints.user
  requireProviderUrls(authorize, token, userUrl)
  const server = { issuer: kind.issuer, authorization_endpoint: authorize, token_endpoint: token }
  const client = new Configuration(server, config.clientId, undefined, ClientSecretPost(config.clientSecret))
  client[customFetch] = fetchForClient
  if (isLoopback(token)) allowInsecureRequests(client)
  return {
    authorizationUrl: (question) => authorizationUrlOf(client, question, config.scopes?.join(' ') ?? kind.scope),
    async fetchProfile(question, answer) {
      const { access_token } = await exchange(client, question, answer)
      return kind.fetchProfile(userUrl, (url) => askApi(url, access_token))
    },
  }
}

function requireProviderUrls(...urls: readonly unknown[]): void {
  if (!urls.every(isProviderUrl)) throw new Error('The provider lacks an endpoint that may be asked')
}

const authorizationUrlOf = async (
  client: Configuration,
  { callbackUrl, state, nonce, verifier }: AuthorizationRequest,
  scope: string,
  more: Readonly<Record<string, string>> = {},
): Promise<string> =>
  buildAuthorizationUrl(client, {
    redirect_uri: callbackUrl,
    scope,
    state,
    // Nothing to those who do not know it.
    nonce,
    code_challenge: await calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    ...more,
  }).href

type Checks = NonNullable<Parameters<typeof authorizationCodeGrant>[2]>

/** The code for tokens; `iss`, where there is one, must be the provider's that was asked (RFC 9207). */
function exchange(
  client: Configuration,
  { callbackUrl, state, verifier }: AuthorizationRequest,
  { user: _user, ...answer }: AuthorizationResponse,
  checks: Checks = {},
  parameters: Record<string, string> = {},
): ReturnType<typeof authorizationCodeGrant> {
  const url = new URL(callbackUrl)
  for (const [name, value] of Object.entries(answer)) if (value !== undefined) url.searchParams.set(name, value)
  return authorizationCodeGrant(
    client,
    url,
    { ...checks, expectedState: state, pkceCodeVerifier: verifier },
    parameters,
  )
}

async function askApi(url: string, accessToken: string): Promise<unknown> {
  const response = await boundedFetch(url, {
    // GitHub answers nobody without a name.
    headers: { Accept: 'application/json', Authorization: `Bearer ${accessToken}`, 'User-Agent': 'plinth' },
  })
  if (response.status !== 200) throw new Error(`The provider answered ${response.status}`)
  return response.json()
}

/** In the body where the provider says that it may be, else in the header, which all must take (RFC 6749). */
function authenticateBy(secret: string): ClientAuth {
  const inBody = ClientSecretPost(secret)
  const inHeader = ClientSecretBasic(secret)
  return (server, ...rest) =>
    (server.token_endpoint_auth_methods_supported?.includes('client_secret_post') ? inBody : inHeader)(server, ...rest)
}
