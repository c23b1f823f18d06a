/** An account: its fields, those of lists, and those of a new one. `accounts` stores accounts. */
import type { JsonObject } from '../../../base/text/json.ts'

/** An account as stored. Times are milliseconds since 1970. */
export interface Account {
  readonly id: string
  /** Normalized (`normalizeEmail`); null for anonymous users and those whose provider sent no address. */
  readonly email: string | null
  readonly passwordHash: string | null
  /** Whether an administrator set the password for this address; the first verification then keeps it. */
  readonly isAdminPassword: boolean
  readonly displayName: string | null
  readonly avatarUrl: string | null
  readonly role: string
  /** What the user may do in the dashboard; null for users who may not open it. */
  readonly dashboardRole: string | null
  readonly emailVerifiedAtMs: number | null
  readonly emailVisibility: 'public' | 'private'
  readonly locale: string | null
  readonly disabledAtMs: number | null
  readonly isAnonymous: boolean
  readonly metadata: JsonObject
  /** Never shown to clients. */
  readonly appMetadata: JsonObject
  /** Set by an administrator. Included in access tokens as `custom`. */
  readonly customClaims: JsonObject
  /** Computed by the application for the newest token; null if it has computed none. See `account-hooks`. */
  readonly hookClaims: JsonObject | null
  readonly createdAtMs: number
  readonly updatedAtMs: number
}

/** Omitted fields default to null, `user`, `private`, false, `{}`, a new id or the current time. */
export type NewAccount = Partial<Account>

/** Fields that may be large, and the password hash: lists omit them. */
export const unlistedNames = ['metadata', 'appMetadata', 'customClaims', 'hookClaims', 'passwordHash'] as const
type UnlistedName = (typeof unlistedNames)[number]
/** An account without the fields that lists omit. */
export type ListedAccount = Omit<Account, UnlistedName>

/** Fields that a new account has if they are omitted. */
export const emptyAccount: Omit<Account, 'id' | 'createdAtMs' | 'updatedAtMs'> = {
  email: null,
  passwordHash: null,
  isAdminPassword: false,
  displayName: null,
  avatarUrl: null,
  role: 'user',
  dashboardRole: null,
  emailVerifiedAtMs: null,
  emailVisibility: 'private',
  locale: null,
  disabledAtMs: null,
  isAnonymous: false,
  metadata: {},
  appMetadata: {},
  customClaims: {},
  hookClaims: null,
}
