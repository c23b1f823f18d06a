/** A user as returned to service keys, and as functions of the application see users. */
import { formatDatetime } from '../../../base/text/datetime.ts'
import type { JsonObject } from '../../../base/text/json.ts'
import type { Account, ListedAccount } from './account.ts'

/** A user as returned to service keys. `name` and `verified` duplicate `displayName` and `emailVerified` (ADMIN-6). */
export interface AdminView {
  readonly id: string
  readonly email: string | null
  readonly name: string | null
  readonly displayName: string | null
  readonly avatarUrl: string | null
  readonly role: string
  readonly emailVerified: boolean
  readonly verified: boolean
  readonly emailVisibility: 'public' | 'private'
  readonly locale: string | null
  readonly disabled: boolean
  readonly isAnonymous: boolean
  readonly metadata: JsonObject
  readonly appMetadata: JsonObject
  readonly customClaims: JsonObject
  readonly createdAt: string
  readonly updatedAt: string
}

/** A user in a list, without the fields that may be large. */
export type ListedUser = Omit<AdminView, 'metadata' | 'appMetadata' | 'customClaims'>

export const listedView = (account: ListedAccount): ListedUser => ({
  id: account.id,
  email: account.email,
  name: account.displayName,
  displayName: account.displayName,
  avatarUrl: account.avatarUrl,
  role: account.role,
  emailVerified: account.emailVerifiedAtMs !== null,
  verified: account.emailVerifiedAtMs !== null,
  emailVisibility: account.emailVisibility,
  locale: account.locale,
  disabled: account.disabledAtMs !== null,
  isAnonymous: account.isAnonymous,
  createdAt: formatDatetime(account.createdAtMs),
  updatedAt: formatDatetime(account.updatedAtMs),
})

export const adminView = (account: Account): AdminView => ({
  ...listedView(account),
  metadata: account.metadata,
  appMetadata: account.appMetadata,
  customClaims: account.customClaims,
})
