/**
 * One person's way to a provider and back. Owns what ties the two ends together; `oauth-connection` checks the
 * provider's answer, `identities` decides whose account it is.
 *
 * The way back is bound to the browser that left: the one-time token of a flow travels in a cookie, and only its hash
 * goes to the provider and comes back as `state`. Somebody who is sent the address that an attacker's own flow ended at
 * (login CSRF) has no cookie for it, and an address that leaks on the way is worth nothing without the cookie.
 *
 * Linking needs more than that, since anyone can have anyone's browser leave. Such a flow is begun by a request with
 * the user's token, ends with a ticket in the hands of whoever's browser came back, and links nothing until that ticket
 * is shown together with a token of the same user: somebody who is led through an attacker's flow does not have the
 * attacker's token, and an attacker never gets the ticket of a flow that another began.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { badRequest } from '../../../errors.ts'
import { oauthFlowLifetimeMs, oauthTicketLifetimeMs } from '../../../limits/users.ts'
import { requireRecentSignIn, type SessionCaller } from '../accounts/recent-sign-in.ts'
import type { UsersParts } from '../parts.ts'
import type { ClientInfo, MfaRequired, SignedIn } from '../sessions/complete-sign-in.ts'
import type { AuthorizationRequest, AuthorizationResponse } from './connection.ts'
import type { Identities, SignInError } from './identities.ts'
import type { OAuthProfile } from './profile.ts'
import type { OAuthProviders } from './providers.ts'

/** Whom a flow is for and where it ends. */
export interface OAuthStart {
  readonly provider: string
  /** Allowed already. */
  readonly redirectUrl: string
  /** The user who links; null for a sign-in. */
  readonly userId: string | null
  /** Where the provider is to send the browser back to. */
  readonly callbackUrl: string
}

/** A browser on its way to the provider. */
export interface OAuthAuthorization {
  readonly url: string
  /** What the browser must bring back. */
  readonly cookie: { readonly name: string; readonly value: string }
}

/** Why a flow ended without anything having changed. */
export type OAuthError = SignInError | 'access-denied' | 'provider-error'

/** What a browser came back with: good for one attempt, whatever comes of it. */
export interface OAuthReturn {
  readonly provider: string
  readonly redirectUrl: string
  /** The provider's own refusal, if it is one. */
  readonly error?: string | undefined
  readonly answer: AuthorizationResponse
  readonly question: AuthorizationRequest
  readonly userId: string | null
}

export type OAuthOutcome = SignedIn | MfaRequired | { readonly linkTicket: string } | OAuthError

export interface OAuthFlows {
  depart(start: OAuthStart): Promise<OAuthAuthorization | 'provider-error'>
  /** Name of the cookie that a state belongs to. */
  cookieName(state: string): string
  /** Uses the flow up. Throws 400 where there is none of that state, or it began in another browser. */
  receive(provider: string, cookie: string | null, parameters: OAuthParameters): Promise<OAuthReturn>
  finish(from: OAuthReturn, client: ClientInfo): Promise<OAuthOutcome>
  /** A ticket with which a browser may start a flow that links. Throws 403 where a recent sign-in is needed. */
  issueStartTicket(caller: SessionCaller, provider: string, redirectUrl: string): Promise<string>
  /** Throws 400 for a ticket that is unknown, expired or used. */
  redeemStartTicket(provider: string, ticket: string): Promise<{ userId: string; redirectUrl: string }>
  /** Throws 400 also for a ticket of another user, who keeps it. */
  redeemLinkTicket(
    tx: Transaction,
    userId: string,
    ticket: string,
  ): Promise<{ provider: string; profile: OAuthProfile }>
}

/** What a provider adds to the callback's address. */
export interface OAuthParameters extends AuthorizationResponse {
  readonly error?: string | undefined
}

/** What the three kinds of tokens carry; one is nothing in the place of another. */
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
/** What providers say when the person changed their mind; the second is Apple's. */
const cancelled = new Set(['access_denied', 'user_cancelled_authorize'])

const flowNotFound = () => badRequest('This sign-in has expired, was finished already, or began in another browser')
const ticketNotFound = () => badRequest('The ticket is not valid or has expired')

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

  /** Null where the provider failed: it may do so in any way, and none of them is told to the browser. */
  async function orReport<T>(provider: string, ask: () => Promise<T>): Promise<T | null> {
    try {
      return await ask()
    } catch (failure) {
      log.warn('users.oauth_provider_failed', { provider, ...describeFailure(failure) })
      return null
    }
  }

  return {
    cookieName: cookieNameOf,

    async depart({ userId, ...start }) {
      const { provider, callbackUrl } = start
      const connection = await orReport(provider, () => providers.connect(provider))
      if (!connection) return 'provider-error'
      const secrets = { nonce: createSecret(), verifier: createSecret() }
      const data: z.output<typeof flowShape> = { step: 'flow', ...start, ...secrets }
      const value = await database.write((tx) => issue(tx, userId, data, oauthFlowLifetimeMs))
      const state = stateOf(value)
      const url = await connection.authorizationUrl({ callbackUrl, state, ...secrets })
      return { url, cookie: { name: cookieNameOf(state), value } }
    },

    async receive(provider, cookie, { error, ...answer }) {
      const { state = '' } = answer
      if (cookie === null || !isStateOf(state, cookie)) throw flowNotFound()
      const flow = await database.write((tx) => redeem(tx, cookie, flowShape))
      if (!flow || flow.data.provider !== provider) throw flowNotFound()
      const { redirectUrl, callbackUrl, nonce, verifier } = flow.data
      const question: AuthorizationRequest = { callbackUrl, state, nonce, verifier }
      return { provider, redirectUrl, error, answer, question, userId: flow.userId }
    },

    async finish({ provider, error, question, answer, userId }, client) {
      if (error !== undefined) return cancelled.has(error) ? 'access-denied' : 'provider-error'
      const profile = await orReport(provider, async () => {
        const connection = await providers.connect(provider)
        return connection.fetchProfile(question, answer)
      })
      if (!profile) return 'provider-error'
      if (userId === null) return identities.signIn(provider, profile, client)
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
      // Thrown within the transaction, so that the ticket is there again for its owner.
      if (!link || link.userId !== userId) throw ticketNotFound()
      return link.data
    },
  }
}

/** 256 bits, in the letters and the length that PKCE asks for (RFC 7636). */
const createSecret = (): string => randomBytes(32).toString('base64url')

/** The state that goes with a token: says nothing of it, nor of the hash under which it is stored. */
const stateOf = (token: string): string => createHash('sha256').update(`oauth state ${token}`).digest('base64url')

const isStateOf = (state: string, token: string): boolean =>
  statePattern.test(state) && timingSafeEqual(Buffer.from(state), Buffer.from(stateOf(token)))

/** One cookie per flow, so that several may be on their way in one browser. */
const cookieNameOf = (state: string): string => `plinth-oauth-${state.slice(0, 16)}`

/** Message and code alone: what libraries hang on errors may hold tokens. */
function describeFailure(failure: unknown): { reason: string; code?: string } {
  if (!(failure instanceof Error)) return { reason: 'unknown' }
  const code = 'code' in failure && typeof failure.code === 'string' ? { code: failure.code } : {}
  return { reason: failure.message.slice(0, 200), ...code }
}
