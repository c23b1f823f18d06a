/**
 * Who is asking. Exactly three kinds (SPEC "What the service does"): anonymous, user, service. A caller is made in one
 * place (`features/users` for tokens, `access/service-keys` for keys) and never changed.
 */
import { accessDenied } from '../errors.ts'

/** What an access rule sees of a signed-in user. Frozen. */
export interface Auth {
  readonly id: string
  /** Null until the user has proved the mailbox: before that, it is whatever was typed at sign-up. */
  readonly email: string | null
  /** Whether `email` is verified; false exactly where `email` is null. */
  readonly emailVerified: boolean
  readonly displayName: string | null
  readonly role: string
  readonly isAnonymous: boolean
  /** Custom claims, set only by the service key. Values are whatever JSON was set. */
  // biome-ignore lint/suspicious/noExplicitAny: claims are the application's own JSON; rules index into them freely.
  readonly custom: Readonly<Record<string, any>>
}

export interface AnonymousCaller {
  readonly kind: 'anonymous'
  readonly auth: null
  /** Client address as rate limits see it; two anonymous callers are told apart by nothing else. */
  readonly address: string
}

export interface UserCaller {
  readonly kind: 'user'
  readonly auth: Auth
  /** Session the token belongs to. */
  readonly sessionId: string | null
  /** When the token ends, in milliseconds since 1970: what goes on after its request must end by then. */
  readonly expiresAtMs: number
}

export interface ServiceCaller {
  readonly kind: 'service'
  readonly auth: null
  /** Name of the key, for logs; never the key. */
  readonly keyName: string
  /** `['*']` for the root key; `access/service-keys` judges a needed scope against them. */
  readonly scopes: readonly string[]
}

export type Caller = AnonymousCaller | UserCaller | ServiceCaller

/** The caller of an endpoint for users. Throws 403 for a service key, which belongs to no user. */
export function requireUser(caller: Caller): UserCaller {
  if (caller.kind !== 'user') throw accessDenied()
  return caller
}

/** One string per distinct caller: keys idempotency records and caches. Contains no secret. */
export function callerKey(caller: Caller): string {
  switch (caller.kind) {
    case 'anonymous':
      return `anonymous:${caller.address}`
    case 'user':
      return `user:${caller.auth.id}`
    case 'service':
      return `service:${caller.keyName}`
  }
}
