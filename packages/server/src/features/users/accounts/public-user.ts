/**
 * What is public of a user: the record of `_users_public`, which everybody may read whom the configuration allows.
 * Writing it is `accounts`'.
 */
import { formatDatetime } from '../../../base/text/datetime.ts'

/** A record as the records API shows it. */
export type PublicUser = {
  readonly id: string
  readonly displayName: string | null
  readonly avatarUrl: string | null
  readonly role: string
  /** Null unless the user has made it public. */
  readonly email: string | null
  readonly createdAt: string
  readonly updatedAt: string
}

/** What of an account the record is made from. */
interface Source extends Pick<PublicUser, 'id' | 'displayName' | 'avatarUrl' | 'role' | 'email'> {
  readonly emailVisibility: 'public' | 'private'
  readonly createdAtMs: number
  readonly updatedAtMs: number
}

export const publicUserOf = (account: Source): PublicUser => ({
  id: account.id,
  displayName: account.displayName,
  avatarUrl: account.avatarUrl,
  role: account.role,
  email: account.emailVisibility === 'public' ? account.email : null,
  createdAt: formatDatetime(account.createdAtMs),
  updatedAt: formatDatetime(account.updatedAtMs),
})
