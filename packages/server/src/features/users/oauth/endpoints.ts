/** Endpoints of sign-in through OAuth providers: start, callback, and start of linking. */

import { requireUser } from '../../../access/caller.ts'
import { z } from '../../../base/schemas/z.ts'
import { isLoopback } from '../../../engines/fetch/bounded-fetch.ts'
import { invalidField, notFound, unavailable, unsupportedMediaType } from '../../../errors.ts'
import { type Call, type Endpoint, endpoint, type Reply } from '../../../http/endpoint.ts'
import { parseQueryString } from '../../../http/input/query-string.ts'
import { validate } from '../../../http/input/validate.ts'
import { empty, json } from '../../../http/replies/reply.ts'
import { oauthFlowLifetimeMs, oauthFormBytesMax, redirectUrlCharsMax } from '../../../limits/users.ts'
import type { UsersParts } from '../parts.ts'
import { clientOf } from '../sessions/complete-sign-in.ts'
import type { OAuthAuthorization, OAuthError, OAuthFlows, OAuthOutcome, OAuthParameters } from './flow.ts'
import type { OAuthProviders } from './providers.ts'
import { parseRedirectUrl } from './redirects.ts'

type Deps = Pick<UsersParts, 'config' | 'publicUrl' | 'log'> & {
  readonly flows: OAuthFlows
  readonly providers: OAuthProviders
}

const common = { tag: 'Sign-in through providers', rateLimit: 'auth' } as const
const basePath = '/api/auth/oauth'

const startQuery = z.object({ redirect_url: z.string().optional(), link: z.string().max(100).optional() })
/** Longer than any provider sends; the request line is bounded as well. */
const parameter = z.string().max(4096).optional()
const callbackShape = z.object({ code: parameter, state: parameter, iss: parameter, error: parameter, user: parameter })
const linkBody = z.strictObject({ redirectUrl: z.string().max(redirectUrlCharsMax) })

const errorMessages: Readonly<Record<OAuthError, string>> = {
  'account-exists': 'An account with this email exists. Sign in to it and link the provider there',
  'account-disabled': 'Account is disabled',
  'signup-disabled': 'Sign-up is disabled',
  'access-denied': 'The sign-in was canceled',
  'provider-error': 'The provider could not be reached, or its response was invalid',
}

const redirectToProvider = {
  302: { description: 'Redirect to the provider, or to the redirect URL with an error in the fragment' },
}
const redirectToApp = {
  302: {
    description:
      'Redirect to the redirect URL, with `accessToken` and `refreshToken`, `mfaTicket`, `linkTicket`, or `error` and ' +
      '`message` in the fragment',
  },
}

export function createOAuthEndpoints(deps: Deps): readonly Endpoint[] {
  const { flows, providers, config } = deps

  function getProvider({ provider = '' }: Call['params']): string {
    if (!providers.has(provider)) throw notFound('Provider')
    return provider
  }

  /** Origin of the server as registered with the provider. Not the `Host` header, which the client controls. */
  function getOrigin(headers: Headers): string {
    const url = deps.publicUrl()
    if (url !== null) return loopbackOrigin(url, headers.get('host') ?? '') ?? url
    deps.log.error('users.public_url_missing', {})
    throw unavailable()
  }

  const callbackUrlOf = (provider: string, { headers }: Call): string =>
    `${getOrigin(headers)}${basePath}/${provider}/callback`

  const parseRedirect = (text: string, field: string): string => {
    const { redirectUrls: listed, allowsLocalRedirects: allowsLocal } = config()
    return parseRedirectUrl(text, { listed, allowsLocal }, field)
  }

  async function begin(call: Call, provider: string, userId: string | null, redirectUrl: string): Promise<Reply> {
    const callbackUrl = callbackUrlOf(provider, call)
    const authorization = await flows.begin({ provider, redirectUrl, userId, callbackUrl })
    if (authorization === 'provider-error') return redirect(withFragment(redirectUrl, authorization))
    return redirect(authorization.url, cookieOf(authorization.cookie, callbackUrl, oauthFlowLifetimeMs / 1000))
  }

  async function handleCallback(call: Call, parameters: OAuthParameters): Promise<Reply> {
    const provider = getProvider(call.params)
    const name = flows.cookieName(parameters.state ?? '')
    const callbackUrl = callbackUrlOf(provider, call)
    const cookie = findCookie(call.headers.get('cookie'), fullName(name, callbackUrl))
    const from = await flows.receive(provider, cookie, parameters)
    const outcome = await flows.finish(from, clientOf(call))
    return redirect(withFragment(from.redirectUrl, outcome), cookieOf({ name, value: '' }, callbackUrl, 0))
  }

  return [
    endpoint({
      name: 'oauth.start',
      method: 'GET',
      paths: [`${basePath}/:provider`],
      ...common,
      summary: 'Sign in through a provider',
      description:
        'For browsers. Redirects to the provider, which returns the browser to the `redirect_url`, which must be allowed.',
      credentials: 'public',
      query: startQuery,
      replies: redirectToProvider,
      errors: [400, 404, 503],
      async handle(call) {
        const { query } = call
        const provider = getProvider(call.params)
        if (query.link !== undefined) {
          const { userId, redirectUrl } = await flows.redeemStartTicket(provider, query.link)
          return begin(call, provider, userId, redirectUrl)
        }
        if (query.redirect_url === undefined) throw invalidField('redirect_url', 'required', 'is required')
        return begin(call, provider, null, parseRedirect(query.redirect_url, 'redirect_url'))
      },
    }),
    endpoint({
      name: 'oauth.callback',
      method: 'GET',
      paths: [`${basePath}/:provider/callback`],
      ...common,
      summary: 'Callback of a provider',
      credentials: 'public',
      query: callbackShape,
      allowsUnknownQuery: true,
      replies: redirectToApp,
      errors: [400, 404],
      handle: (call) => handleCallback(call, call.query),
    }),
    endpoint({
      name: 'oauth.callbackForm',
      method: 'POST',
      paths: [`${basePath}/:provider/callback`],
      ...common,
      summary: 'Callback of a provider by form post',
      description:
        'Browsers send no cookies with a cross-site form post, so the response redirects them to the callback with a query.',
      credentials: 'public',
      accepts: { contentType: formType, schema: callbackShape },
      replies: { 303: { description: 'Redirect to the same URL with the form as its query' } },
      errors: [400, 404, 413, 415],
      async handle(call) {
        const provider = getProvider(call.params)
        const form = validate(callbackShape, await readForm(call))
        const given = Object.entries(form).filter(([, value]) => value !== undefined) as [string, string][]
        return redirect(`${callbackUrlOf(provider, call)}?${new URLSearchParams(given)}`, undefined, 303)
      },
    }),
    endpoint({
      name: 'oauth.link',
      method: 'POST',
      paths: [`${basePath}/:provider/link`],
      ...common,
      summary: 'Start linking a provider to the signed-in user',
      description:
        'Send the browser to `url`. It returns to the redirect URL with a `linkTicket` in the fragment, for ' +
        '`POST /api/auth/identities`. Requires a sign-in in the last ten minutes, except for anonymous users.',
      credentials: 'user',
      body: linkBody,
      replies: { 200: { description: 'Where to send the browser', schema: z.object({ url: z.url() }) } },
      errors: [403, 404, 503],
      async handle(call) {
        const provider = getProvider(call.params)
        const redirectUrl = parseRedirect(call.body.redirectUrl, 'redirectUrl')
        const start = `${getOrigin(call.headers)}${basePath}/${provider}`
        const ticket = await flows.issueStartTicket(requireUser(call.caller), provider, redirectUrl)
        return json({ url: `${start}?link=${ticket}` })
      },
    }),
  ]
}

/**
 * The public URL under the loopback name that the browser used, if both are loopback names: cookies are bound to the
 * name. Null otherwise.
 */
function loopbackOrigin(publicUrl: string, host: string): string | null {
  const requested = URL.parse(`http://${host}`)
  if (!requested || requested.host !== host || !isLoopback(requested.origin) || !isLoopback(publicUrl)) return null
  return requested.port === new URL(publicUrl).port ? requested.origin : null
}

/** Keeps tokens and tickets out of caches and `Referer` headers. */
const redirectHeaders = { 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer' }

const redirect = (location: string, cookie?: string, status = 302): Reply =>
  empty(status, { ...redirectHeaders, Location: location, ...(cookie === undefined ? {} : { 'Set-Cookie': cookie }) })

function withFragment(redirectUrl: string, outcome: OAuthOutcome): string {
  return `${redirectUrl}#${new URLSearchParams(fragmentOf(outcome))}`
}

function fragmentOf(outcome: OAuthOutcome): Record<string, string> {
  if (typeof outcome === 'string') return { error: outcome, message: errorMessages[outcome] }
  if ('refusal' in outcome) return { error: outcome.refusal.slug, message: outcome.refusal.message }
  if ('linkTicket' in outcome) return { linkTicket: outcome.linkTicket }
  if ('mfaTicket' in outcome) return { mfaTicket: outcome.mfaTicket }
  return { accessToken: outcome.accessToken, refreshToken: outcome.refreshToken }
}

/**
 * Over HTTPS the cookie has the prefix `__Host-`, so that another host of the same domain cannot plant a cookie of its
 * own flow.
 */
const fullName = (name: string, callbackUrl: string): string => (isSecure(callbackUrl) ? `__Host-${name}` : name)
const isSecure = (url: string): boolean => url.startsWith('https:')

/** `SameSite=Lax` sends the cookie with the redirect of the provider, but not with other cross-site requests. */
function cookieOf({ name, value }: OAuthAuthorization['cookie'], callbackUrl: string, maxAgeSeconds: number): string {
  const secure = isSecure(callbackUrl) ? '; Secure' : ''
  return `${fullName(name, callbackUrl)}=${value}; Max-Age=${maxAgeSeconds}; Path=/; HttpOnly; SameSite=Lax${secure}`
}

function findCookie(header: string | null, name: string): string | null {
  for (const pair of header?.split(';') ?? []) {
    const equals = pair.indexOf('=')
    if (equals > 0 && pair.slice(0, equals).trim() === name) return pair.slice(equals + 1).trim()
  }
  return null
}

const formType = 'application/x-www-form-urlencoded'

/** Parses a form without repeated fields. Rejects with 415 for another content type, 413 if it is too large, 400. */
async function readForm({ headers, rawBody }: Call): Promise<Readonly<Record<string, string>>> {
  const [type = ''] = (headers.get('content-type') ?? '').split(';')
  if (type.trim().toLowerCase() !== formType) throw unsupportedMediaType(formType)
  return parseQueryString(new TextDecoder().decode(await rawBody.read(oauthFormBytesMax)))
}
