/**
 * Port: the owner's code that runs for accounts. `features/users` calls it and appends the events of accounts to a
 * change log; the feature that runs functions implements it and dispatches the log.
 */
import type { ApiError } from '../errors.ts'
import type { HookRequest } from './before-hooks.ts'

export const userEvents = ['created', 'deleted', 'disabled'] as const
export type UserEvent = (typeof userEvents)[number]

/**
 * Where the events are: rows of the change log of this static namespace, under a table that does not exist. A row has
 * an id of its own and `after` with the members of `UserEventRow`.
 */
export const userEventsLog = { namespace: 'shared', table: '_user_events' } as const

export interface UserEventRow {
  readonly event: UserEvent
  /** As service keys see it; of a deletion, as it was before. */
  readonly user: { readonly id: string }
}

/** An account that does not exist yet. */
export interface SignUpEvent {
  /** As it would be stored; null without one. */
  readonly email: string | null
  /** `password`, `email`, `anonymous` or the name of an OAuth provider; null where an operator creates the account. */
  readonly provider: string | null
  /** The fields that the hook may change. */
  readonly data: Readonly<Record<string, unknown>>
}

export interface HookAnswer {
  /** JSON, not validated; null if the hook has returned nothing. */
  readonly text: string | null
  /** Logs that the answer cannot be used, with the place of the hook. Returns the error for the caller. */
  fail(problem: string): ApiError
}

/** Throws what the hook refuses with, and another `ApiError` where it or its host fails. Not for transactions. */
type RunHook<Event> = (event: Event, request: HookRequest) => Promise<HookAnswer>

export interface AuthHooks {
  /** Runs before an account is created; null if the application has no such function. */
  readonly beforeSignUp: RunHook<SignUpEvent> | null
  /** The claims of a user's access tokens, of the user as service keys see it; null if the application has none. */
  readonly claims: RunHook<object> | null
  /** Whether a function waits for the event. */
  waitsFor(event: UserEvent): boolean
}
