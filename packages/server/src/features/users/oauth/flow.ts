/**
 * The OAuth flow of one browser: from the redirect to the provider to its callback. `connection` verifies the
 * response of the provider; `identities` maps the profile to an account.
 *
 * The callback is bound to the browser that started the flow: the one-time token of the flow is in a cookie, and only
 * its hash is sent to the provider and returned as `state`. A victim who is sent the callback URL of an attacker's flow
 * (login CSRF) lacks the cookie, and a leaked callback URL is useless without it.
 *
 * Linking needs more, since anyone can start a flow in any browser. A linking flow starts with an authenticated
 * request, ends with a ticket in the browser that returned, and links only when that ticket is redeemed with an access
 * token of the same user. A victim led through an attacker's flow lacks the attacker's access token, and an attacker
 * never gets the ticket of a flow that ran in another browser.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { z } from '../../../base/schemas/z.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { ApiError, badRequest } from '../../../errors.ts'
import { oauthFlowLifetimeMs, oauthTicketLifetimeMs } from '../../../limits/users.ts'
import type { ClientInfo } from '../accounts/client-info.ts'
import { requireRecentSignIn, type SessionCaller } from '../accounts/recent-sign-in.ts'
import type { UsersParts } from '../parts.ts'
import type { MfaRequired } from '../sessions/complete-sign-in.ts'
import type { SignedIn } from '../sessions/signed-in.ts'
import type { AuthorizationRequest, AuthorizationResponse } from './connection.ts'
import type { Identities, SignInError } from './identities.ts'
import type { OAuthProfile } from './profile.ts'
import type { OAuthProviders } from './providers.ts'

/** Parameters of a new flow. */
export interface OAuthStart {
  readonly provider: string
  /** Checked against the allowed URLs. */
  readonly redirectUrl: string
  /** The user who links the provider; null for a sign-in. */
  readonly userId: string | null
  /** Where the provider returns the browser to. */
  readonly callbackUrl: string
}

/** A started flow. */
export interface OAuthAuthorization {
  readonly url: string
  /** Binds the flow to the browser. */
  readonly cookie: { readonly name: string; readonly value: string }
}

/** Why a flow failed. Nothing was changed. */
export type OAuthError = SignInError | 'access-denied' | 'provider-error'

/** A received callback, which can be finished once. */
export interface OAuthCallback {
  readonly provider: string
  readonly redirectUrl: string
  /** Error reported by the provider. */
  readonly error?: string | undefined
  readonly response: AuthorizationResponse
  readonly request: AuthorizationRequest
  readonly userId: string | null
}

export type OAuthOutcome =
  | SignedIn
  | MfaRequired
  | { readonly linkTicket: string }
  /** A hook of the application refused the sign-in, or failed. Nothing was changed. */
  | { readonly refusal: ApiError }
  | OAuthError

export interface OAuthFlows {
  begin(start: OAuthStart): Promise<OAuthAuthorization | 'provider-error'>
  /** Name of the cookie of a `state`. */
  cookieName(state: string): string
  /** Redeems the flow. Rejects with 400 if there is no flow with this `state`, or it started in another browser. */
  receive(provider: string, cookie: string | null, parameters: OAuthParameters): Promise<OAuthCallback>
  finish(from: OAuthCallback, client: ClientInfo): Promise<OAuthOutcome>
  /** A ticket that starts a linking flow in a browser. Rejects with 403 if a recent sign-in is required. */
  issueStartTicket(caller: SessionCaller, provider: string, redirectUrl: string): Promise<string>
  /** Rejects with 400 if the ticket is unknown, expired or used. */
  redeemStartTicket(provider: string, ticket: string): Promise<{ userId: string; redirectUrl: string }>
  /** Rejects like `redeemStartTicket`, and for a ticket of another user, which then stays valid. */
  redeemLinkTicket(
    tx: Transaction,
    userId: string,
    ticket: string,
  ): Promise<{ provider: string; profile: OAuthProfile }>
}

/** Query parameters of the callback. */
export interface OAuthParameters extends AuthorizationResponse {
  readonly error?: string | undefined
}

/** Data of the three kinds of tokens. `step` prevents using one in place of another. */
const startShape = z.object({ step: z.literal('start'), provider: z.string(), redirectUrl: z.string() })
const flowShape = z.object({
  step: z.literal('flow'),
  provider: z.string(),
  redirectUrl: z.string(),
  callbackUrl: z.string(),
  nonce: z.string(),
  verifier: z.string(),
})
const linkShape = z.object({
  step: z.literal('link'),
  provider: z.string(),
  profile: z.object({
    subject: z.string(),
    email: z.string().nullable(),
    isEmailVerified: z.boolean(),
    displayName: z.string().nullable(),
    avatarUrl: z.string().nullable(),
  }),
})

const purpose = 'oauth-state'
const statePattern = /^[\w-]{43}$/
/** Errors that mean the user canceled. Apple sends the second one. */
const canceled = new Set(['access_denied', 'user_cancelled_authorize'])

const flowNotFound = () =>
  badRequest('This sign-in has expired, was completed already, or started in another browser. Start it again')
const ticketNotFound = () => badRequest('The ticket is invalid or has expired. Start linking again')

type Deps = Pick<UsersParts, 'database' | 'oneTimeTokens' | 'clock' | 'log'> & {
  readonly providers: OAuthProviders
  readonly identities: Identities
}

export function createOAuthFlows({ database, oneTimeTokens, clock, log, providers, identities }: Deps): OAuthFlows {
  const issue = (tx: Transaction, userId: string | null, data: object, lifetimeMs: number): Promise<string> =>
    oneTimeTokens.issue(tx, { purpose, userId, data: { ...data }, lifetimeMs })

  async function redeem<T>(tx: Transaction, token: string, shape: z.ZodType<T>) {
    const subject = await oneTimeTokens.redeem(tx, purpose, token)
    const { success, data } = shape.safeParse(subject?.data)
    return subject && success ? { userId: subject.userId, data } : null
  }

  /** Null if the provider failed. The reason is logged, and not disclosed to the browser. */
  async function orLogFailure<T>(provider: string, work: () => Promise<T>): Promise<T | null> {
    try {
      return await work()
    } catch (failure) {
      log.warn('users.oauth_provider_failed', { provider, ...describeFailure(failure) })
      return null
    }
  }

  return {
    cookieName: cookieNameOf,

    async begin({ userId, ...start }) {
      const { provider, callbackUrl } = start
      const connection = await orLogFailure(provider, () => providers.connect(provider))
      if (!connection) return 'provider-error'
      const secrets = { nonce: createSecret(), verifier: createSecret() }
      const data: z.output<typeof flowShape> = { step: 'flow', ...start, ...secrets }
      const value = await database.write((tx) => issue(tx, userId, data, oauthFlowLifetimeMs))
      const state = stateOf(value)
      const url = await connection.authorizationUrl({ callbackUrl, state, ...secrets })
      return { url, cookie: { name: cookieNameOf(state), value } }
    },

    async receive(provider, cookie, { error, ...response }) {
      const { state = '' } = response
      if (cookie === null || !isStateOf(state, cookie)) throw flowNotFound()
      const flow = await database.write((tx) => redeem(tx, cookie, flowShape))
      if (!flow || flow.data.provider !== provider) throw flowNotFound()
      const { redirectUrl, callbackUrl, nonce, verifier } = flow.data
      const request: AuthorizationRequest = { callbackUrl, state, nonce, verifier }
      return { provider, redirectUrl, error, response, request, userId: flow.userId }
    },

    async finish({ provider, error, request, response, userId }, client) {
      if (error !== undefined) return canceled.has(error) ? 'access-denied' : 'provider-error'
      const profile = await orLogFailure(provider, async () => {
        const connection = await providers.connect(provider)
        return connection.fetchProfile(request, response)
      })
      if (!profile) return 'provider-error'
      if (userId === null)
        try {
          return await identities.signIn(provider, profile, client)
        } catch (error) {
          // For a browser, which is at this address only on its way to the application.
          if (error instanceof ApiError) return { refusal: error }
          throw error
        }
      const data: z.output<typeof linkShape> = { step: 'link', provider, profile }
      return { linkTicket: await database.write((tx) => issue(tx, userId, data, oauthTicketLifetimeMs)) }
    },

    issueStartTicket(caller, provider, redirectUrl) {
      const data: z.output<typeof startShape> = { step: 'start', provider, redirectUrl }
      return database.write(async (tx) => {
        await requireRecentSignIn(tx, { dialect: database.dialect, clock }, caller)
        return issue(tx, caller.auth.id, data, oauthTicketLifetimeMs)
      })
    },

    async redeemStartTicket(provider, ticket) {
      const start = await database.write((tx) => redeem(tx, ticket, startShape))
      if (!start || start.userId === null || start.data.provider !== provider) throw ticketNotFound()
      return { userId: start.userId, redirectUrl: start.data.redirectUrl }
    },

    async redeemLinkTicket(tx, userId, ticket) {
      const link = await redeem(tx, ticket, linkShape)
      // Thrown within the transaction, which rolls back the redemption for the owner of the ticket.
      if (!link || link.userId !== userId) throw ticketNotFound()
      return link.data
    },
  }
}

/** 256 random bits in the alphabet and length of PKCE (RFC 7636). */
const createSecret = (): string => randomBytes(32).toString('base64url')

/** The `state` of a flow token. Reveals neither the token nor its stored hash. */
const stateOf = (token: string): string => createHash('sha256').update(`oauth state ${token}`).digest('base64url')

const isStateOf = (state: string, token: string): boolean =>
  statePattern.test(state) && timingSafeEqual(Buffer.from(state), Buffer.from(stateOf(token)))

/** One cookie per flow, so that a browser can run several at once. */
const cookieNameOf = (state: string): string => `plinth-oauth-${state.slice(0, 16)}`

/** Only the message and the code: other properties of library errors may contain tokens. */
function describeFailure(failure: unknown): { reason: string; code?: string } {
  if (!(failure instanceof Error)) return { reason: 'unknown' }
  const code = 'code' in failure && typeof failure.code === 'string' ? { code: failure.code } : {}
  return { reason: failure.message.slice(0, 200), ...code }
}
