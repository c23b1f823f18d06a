/**
 * The authenticated identity of a request, of exactly three kinds: anonymous, user or service. `features/users` creates
 * callers from tokens, `access/service-keys` from keys. Callers are immutable.
 */
import { accessDenied } from '../errors.ts'
import type { Auth } from './auth.ts'

export type { Auth } from './auth.ts'

export interface AnonymousCaller {
  readonly kind: 'anonymous'
  readonly auth: null
  /** Client address as used by rate limits; the only thing that distinguishes two anonymous callers. */
  readonly address: string
}

export interface UserCaller {
  readonly kind: 'user'
  readonly auth: Auth
  /** Session that the token was issued for. */
  readonly sessionId: string | null
  /** Expiry of the token in milliseconds since 1970. Work that outlives the request must end by then. */
  readonly expiresAtMs: number
  /** The `callerKey`, kept because a request uses it several times. */
  readonly key: string
}

export interface ServiceCaller {
  readonly kind: 'service'
  readonly auth: null
  /** Name of the key, for logs; never the key itself. Of an administrator `admin:` and the id of the user. */
  readonly keyName: string
  /** `['*']` for the root key; checked with `permitsScope` of `access/service-keys`. */
  readonly scopes: readonly string[]
  /** The administrator who makes the request in the dashboard; absent for service keys. */
  readonly admin?: Administrator
}

/** A user who is signed in to the dashboard. Only a dashboard session makes one. */
export interface Administrator {
  readonly userId: string
  readonly email: string | null
  readonly role: string
  readonly sessionId: string
  /** When the password or the passkey was given, in milliseconds since 1970. */
  readonly signedInAtMs: number
  /** Present while the session shows data as a user sees it; then it only reads. */
  readonly viewedAs?: ViewedUser
}

/** The user as whom an administrator views data. */
export interface ViewedUser {
  readonly userId: string
  /** The caller that access rules see; null if the user was disabled or deleted meanwhile. */
  readonly caller: UserCaller | null
  /** Milliseconds since 1970. */
  readonly endsAtMs: number
}

/** Prefix of the `keyName` of administrators; no service key has such a name. */
export const administratorPrefix = 'admin:'

export type Caller = AnonymousCaller | UserCaller | ServiceCaller

/** The caller of an endpoint for signed-in users. Throws 403 for a service key, which belongs to no user. */
export function requireUser(caller: Caller): UserCaller {
  if (caller.kind !== 'user') throw accessDenied()
  return caller
}

/** The `callerKey` of a user. */
export const userKey = (id: string): string => `user:${id}`

/** A user as a caller; by default without a session and an expiry. */
export const userCallerOf = (
  auth: Auth,
  sessionId: string | null = null,
  expiresAtMs: number = Number.POSITIVE_INFINITY,
): UserCaller => Object.freeze({ kind: 'user', auth, sessionId, expiresAtMs, key: userKey(auth.id) })

/** One string per distinct caller, used as a key of idempotency records and caches. Contains no secret. */
export function callerKey(caller: Caller): string {
  switch (caller.kind) {
    case 'anonymous':
      return `anonymous:${caller.address}`
    case 'user':
      return caller.key
    case 'service':
      return `service:${caller.keyName}`
  }
}
