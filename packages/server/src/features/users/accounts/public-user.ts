/** The public record of a user in `_users_public`. `accounts` writes it; the configuration decides who may read it. */
import { formatDatetime } from '../../../base/text/datetime.ts'

/** A record as returned by the records API. */
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

/** The fields of an account that the record is derived from. */
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
