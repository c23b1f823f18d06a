/**
 * The one way in: however somebody has proved who they are, this decides what they get. Methods of proving it are their
 * own files; sessions and tokens are `sessions`'.
 */
import { z } from 'zod'
import { type Caller, requireUser } from '../../../access/caller.ts'
import type { Dialect } from '../../../engines/sql/dialect.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { accountDisabled } from '../../../errors.ts'
import type { Call } from '../../../http/endpoint.ts'
import { mfaTicketLifetimeMs } from '../../../limits/users.ts'
import type { Account } from '../accounts/accounts.ts'
import type { ClientInfo } from '../accounts/client-info.ts'
import { userViewSchema } from '../accounts/user-view.ts'
import type { OneTimeTokens } from '../email/one-time-tokens.ts'
import { usersTable } from '../tables.ts'
import type { Sessions, SignedIn } from './sessions.ts'

export type { ClientInfo } from '../accounts/client-info.ts'
export type { SignedIn } from './sessions.ts'

/** Half a sign-in: the ticket and a code of one of the factors make it whole. */
export interface MfaRequired {
  readonly mfaRequired: true
  readonly mfaTicket: string
  readonly factors: readonly { readonly id: string; readonly type: 'totp' }[]
}

export interface SignIn {
  /**
   * Ends a sign-in of an account that was read with a lock in this transaction: a session, or where the user has a
   * confirmed second factor a ticket for it, unless the proof was strong already (a passkey, or the factor itself).
   * Throws 403 `Account is disabled`.
   */
  complete(
    tx: Transaction,
    account: Account,
    client: ClientInfo,
    options?: { readonly isStrong?: boolean },
  ): Promise<SignedIn | MfaRequired>
}

/** For OpenAPI: a whole sign-in, or half of one. */
export const signedInSchema = z.object({
  user: userViewSchema,
  accessToken: z.string(),
  refreshToken: z.string(),
  deviceToken: z.string().optional().meta({
    description: 'To be sent along with later sign-ins: wrong passwords from elsewhere then do not lock the device out',
  }),
})
export const signInSchema = z.union([
  signedInSchema,
  z.object({
    mfaRequired: z.literal(true),
    mfaTicket: z.string(),
    factors: z.array(z.object({ id: z.string(), type: z.literal('totp') })),
  }),
])

/** Who signs in, as the request tells. */
export const clientOf = (
  { headers, address }: Pick<Call, 'headers' | 'address'>,
  deviceToken?: string | undefined,
): ClientInfo => ({ userAgent: headers.get('user-agent'), address, deviceToken: deviceToken ?? null })

export const userIdOf = (caller: Caller): string => requireUser(caller).auth.id

/** A user has one authenticator, or a few. */
const factorsShown = 10

export function createSignIn(deps: { dialect: Dialect; sessions: Sessions; oneTimeTokens: OneTimeTokens }): SignIn {
  const { dialect, sessions, oneTimeTokens } = deps
  return {
    async complete(tx, account, client, { isStrong = false } = {}) {
      if (account.disabledAtMs !== null) throw accountDisabled()
      if (!isStrong) {
        const factors = await tx.all<{ id: string }>(
          sql`SELECT id FROM ${usersTable(dialect, 'factors')}
            WHERE user_id = ${account.id} AND confirmed_at IS NOT NULL ORDER BY id LIMIT ${factorsShown}`,
        )
        if (factors.length > 0) {
          const order = { purpose: 'mfa-ticket', userId: account.id, lifetimeMs: mfaTicketLifetimeMs } as const
          const mfaTicket = await oneTimeTokens.issue(tx, order)
          return { mfaRequired: true, mfaTicket, factors: factors.map(({ id }) => ({ id, type: 'totp' })) }
        }
      }
      return sessions.open(tx, account, client)
    },
  }
}
