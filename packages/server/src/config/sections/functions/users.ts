/** What the functions of accounts receive: users, and the events of sign-ups and users. */

// biome-ignore lint/suspicious/noExplicitAny: JSON of the application.
type AnyJson = any

/** A user as service keys see it. */
export interface User {
  readonly id: string
  /** Null for anonymous users, and where a provider sent no verified address. */
  readonly email: string | null
  /** The same as `displayName`. */
  readonly name: string | null
  readonly displayName: string | null
  readonly avatarUrl: string | null
  readonly role: string
  readonly emailVerified: boolean
  /** The same as `emailVerified`. */
  readonly verified: boolean
  readonly emailVisibility: 'public' | 'private'
  readonly locale: string | null
  readonly disabled: boolean
  readonly isAnonymous: boolean
  readonly metadata: Readonly<Record<string, AnyJson>>
  readonly appMetadata: Readonly<Record<string, AnyJson>>
  /** Those that an administrator has set. */
  readonly customClaims: Readonly<Record<string, AnyJson>>
  readonly createdAt: string
  readonly updatedAt: string
}

/** The fields of a new account that a function may change. */
export interface SignUpData {
  readonly displayName: string | null
  readonly avatarUrl: string | null
  readonly locale: string | null
  readonly role: string
  /** Users see and change it themselves. */
  readonly metadata: Readonly<Record<string, AnyJson>>
  /** Only service keys see it. */
  readonly appMetadata: Readonly<Record<string, AnyJson>>
}

export interface SignUpEvent {
  /** As it would be stored; null for an anonymous account, and where a provider sent no verified address. */
  readonly email: string | null
  /**
   * `password`, `email` (a link or a code), `anonymous`, or the name of an OAuth provider; null where an operator
   * creates the account.
   */
  readonly provider: string | null
  readonly data: SignUpData
}

export type UserEventName = 'created' | 'deleted' | 'disabled'

export interface UserEvent<Event extends UserEventName = UserEventName> {
  readonly event: Event
  /** After the event; a deleted user as it was before. */
  readonly user: User
  readonly change: { readonly id: string; readonly at: string }
  /** From 1. */
  readonly attempt: number
}
