/**
 * Client of a provider: authorization requests, and verification of the responses. `openid-client` performs the checks
 * themselves (state, issuer, audience, nonce, signature against the published keys of the issuer).
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

/** The values that bind a response to its authorization request. */
export interface AuthorizationRequest {
  /** Where the provider returns the browser to. */
  readonly callbackUrl: string
  readonly state: string
  readonly nonce: string
  /** PKCE code verifier; the provider received its hash. */
  readonly verifier: string
}

/** The parameters of the callback. */
export interface AuthorizationResponse {
  readonly code?: string | undefined
  readonly state?: string | undefined
  readonly iss?: string | undefined
  /** JSON that Apple sends at the first sign-in. Unsigned, so only the name is used. */
  readonly user?: string | undefined
}

/** A provider with resolved endpoints and keys. */
export interface OAuthConnection {
  /** The URL to redirect the browser to. */
  authorizationUrl(request: AuthorizationRequest): Promise<string>
  /** Exchanges the code and loads the profile. Rejects if the provider fails or its response is invalid. */
  fetchProfile(request: AuthorizationRequest, response: AuthorizationResponse): Promise<OAuthProfile>
}

const boundedFetch = createBoundedFetch({ timeoutMs: oauthFetchTimeoutMs, bytesMax: oauthResponseBytesMax })
/** Adapter to the signature of the library. */
const fetchForClient: CustomFetch = (url, options) =>
  boundedFetch(url, { ...options, body: (options.body ?? null) as BodyInit | null })

/** Rejects if the provider is unreachable or does not match the configuration. */
export async function connectProvider(name: string, config: ProviderConfig, clock: Clock): Promise<OAuthConnection> {
  const api = apiKinds.get(name)
  return api ? connectApi(api, config) : connectOidc(oidcKinds.get(name), config, clock)
}

async function connectOidc(kind: OidcKind | undefined, config: ProviderConfig, clock: Clock): Promise<OAuthConnection> {
  const issuer = config.issuer ?? kind?.issuer(config)
  if (issuer === undefined) throw new Error('The provider has no issuer in the configuration')
  const { clientId, clientSecret } = config
  const options = {
    // Verifies the signature of the ID token, instead of trusting the TLS connection it came from.
    execute: [enableNonRepudiationChecks, ...(isLoopback(issuer) ? [allowInsecureRequests] : [])],
    [customFetch]: fetchForClient,
  }
  const authentication = clientSecret === undefined ? None() : authenticateBy(clientSecret)
  const client = await discovery(new URL(issuer), clientId, undefined, authentication, options)
  const { authorization_endpoint, token_endpoint, jwks_uri } = client.serverMetadata()
  requireProviderUrls(authorization_endpoint, token_endpoint, jwks_uri)
  const scope = config.scopes?.join(' ') ?? kind?.scope ?? scopeDefault
  return {
    authorizationUrl: (request) => authorizationUrlOf(client, request, scope, kind?.parameters),
    async fetchProfile(request, response) {
      const parameters = await kind?.tokenParameters?.(config, clock)
      const checks = { expectedNonce: request.nonce, idTokenExpected: true }
      const tokens = await exchange(client, request, response, checks, parameters)
      const claims = tokens.claims()
      if (!claims) throw new Error('The provider sent no ID token')
      const needsUserInfo = claims.email === undefined && client.serverMetadata().userinfo_endpoint !== undefined
      const more = needsUserInfo ? await fetchUserInfo(client, tokens.access_token, claims.sub) : {}
      const profile = parseOidcProfile({ ...more, ...claims }, kind?.verifiedClaim)
      return { ...profile, displayName: profile.displayName ?? findAppleName(response.user) }
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
    authorizationUrl: (request) => authorizationUrlOf(client, request, config.scopes?.join(' ') ?? kind.scope),
    async fetchProfile(request, response) {
      const { access_token } = await exchange(client, request, response)
      return kind.fetchProfile(userUrl, (url) => fetchApi(url, access_token))
    },
  }
}

function requireProviderUrls(...urls: readonly unknown[]): void {
  if (!urls.every(isProviderUrl)) throw new Error('The provider lacks an endpoint, or its URL is not allowed')
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
    // Ignored by plain OAuth 2 providers.
    nonce,
    code_challenge: await calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    ...more,
  }).href

type Checks = NonNullable<Parameters<typeof authorizationCodeGrant>[2]>

/** Exchanges the code for tokens. `iss`, if present, must name the issuer that the request went to (RFC 9207). */
function exchange(
  client: Configuration,
  { callbackUrl, state, verifier }: AuthorizationRequest,
  { user: _user, ...response }: AuthorizationResponse,
  checks: Checks = {},
  parameters: Record<string, string> = {},
): ReturnType<typeof authorizationCodeGrant> {
  const url = new URL(callbackUrl)
  for (const [name, value] of Object.entries(response)) if (value !== undefined) url.searchParams.set(name, value)
  return authorizationCodeGrant(
    client,
    url,
    { ...checks, expectedState: state, pkceCodeVerifier: verifier },
    parameters,
  )
}

async function fetchApi(url: string, accessToken: string): Promise<unknown> {
  const response = await boundedFetch(url, {
    // GitHub rejects requests without a user agent.
    headers: { Accept: 'application/json', Authorization: `Bearer ${accessToken}`, 'User-Agent': 'plinth' },
  })
  if (response.status !== 200) throw new Error(`The provider returned status ${response.status}`)
  return response.json()
}

/** In the body if the provider supports it, else in the header, which every provider must support (RFC 6749). */
function authenticateBy(secret: string): ClientAuth {
  const inBody = ClientSecretPost(secret)
  const inHeader = ClientSecretBasic(secret)
  return (server, ...rest) =>
    (server.token_endpoint_auth_methods_supported?.includes('client_secret_post') ? inBody : inHeader)(server, ...rest)
}
