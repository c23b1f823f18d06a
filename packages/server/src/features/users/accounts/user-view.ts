/** A user as returned to their own client. */
import { z } from '../../../base/schemas/z.ts'
import { formatDatetime } from '../../../base/text/datetime.ts'
import type { JsonObject } from '../../../base/text/json.ts'
import type { Account } from './account.ts'

export interface UserView {
  readonly id: string
  readonly email: string | null
  readonly displayName: string | null
  readonly avatarUrl: string | null
  readonly role: string
  readonly emailVerified: boolean
  readonly isAnonymous: boolean
  readonly emailVisibility: 'public' | 'private'
  readonly locale: string | null
  readonly metadata: JsonObject
  readonly createdAt: string
  readonly updatedAt: string
}

/** Omits hashes, `appMetadata` and custom claims. */
export const userView = (account: Account): UserView => ({
  id: account.id,
  email: account.email,
  displayName: account.displayName,
  avatarUrl: account.avatarUrl,
  role: account.role,
  emailVerified: account.emailVerifiedAtMs !== null,
  isAnonymous: account.isAnonymous,
  emailVisibility: account.emailVisibility,
  locale: account.locale,
  metadata: account.metadata,
  createdAt: formatDatetime(account.createdAtMs),
  updatedAt: formatDatetime(account.updatedAtMs),
})

/** For OpenAPI. */
export const userViewSchema = z.object({
  id: z.string(),
  email: z.string().nullable(),
  displayName: z.string().nullable(),
  avatarUrl: z.string().nullable(),
  role: z.string(),
  emailVerified: z.boolean(),
  isAnonymous: z.boolean(),
  emailVisibility: z.enum(['public', 'private']),
  locale: z.string().nullable(),
  metadata: z.record(z.string(), z.unknown()),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
})
