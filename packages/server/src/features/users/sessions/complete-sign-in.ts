/**
 * The last step of every sign-in method: decides between a session and a ticket for the second factor. Each method
 * proves the identity in its own file; `sessions` issues the tokens.
 */

import { type Caller, requireUser } from '../../../access/caller.ts'
import { z } from '../../../base/schemas/z.ts'
import type { Dialect } from '../../../engines/sql/dialect.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { accountDisabled } from '../../../errors.ts'
import type { Call } from '../../../http/endpoint.ts'
import { mfaTicketLifetimeMs } from '../../../limits/users.ts'
import type { Account } from '../accounts/account.ts'
import type { ClientInfo } from '../accounts/client-info.ts'
import { userViewSchema } from '../accounts/user-view.ts'
import type { OneTimeTokens } from '../email/one-time-tokens.ts'
import { hookedRequest } from '../hooks/hooked-request.ts'
import { usersTable } from '../migrations.ts'
import type { Sessions } from './sessions.ts'
import type { SignedIn } from './signed-in.ts'

/**
 * A sign-in that needs a second factor: the ticket, together with a code of one of the factors, completes it. Without a
 * factor, the user has to enroll one with the ticket first.
 */
export interface MfaRequired {
  readonly mfaRequired: true
  readonly mfaTicket: string
  readonly factors: readonly { readonly id: string; readonly type: 'totp' }[]
}

/** What users sign in to: the API, or the dashboard. Tickets and challenges of one are not valid for another. */
export interface SignInTarget<Result> {
  readonly name: 'api' | 'dashboard'
  /** Throws for an account that may not sign in there; called once its identity is proved. */
  readonly admit: (account: Account) => void
  /** Whether accounts without a second factor have to enroll one. */
  readonly requiresFactor: () => boolean
  /** Opens the session. */
  readonly open: (tx: Transaction, account: Account, client: ClientInfo) => Promise<Result>
}

/** Data of a ticket for the second factor. */
export interface TicketData {
  readonly target?: string
  /** The user has no factor yet, and has to enroll one. */
  readonly enrolls?: boolean
}

/**
 * Completes a sign-in. `account` was read with a lock in this transaction. Returns a session, or a ticket for the
 * second factor if the user has a confirmed one and the proof was not strong already (`isStrong`: a passkey, or the
 * factor itself). Rejects with 403 `Account is disabled`. To be called in `hooks.write`.
 */
export type CompleteSignIn<Result = SignedIn> = (
  tx: Transaction,
  account: Account,
  client: ClientInfo,
  options?: { readonly isStrong?: boolean },
) => Promise<Result | MfaRequired>

/** For OpenAPI. `signInSchema` also covers a sign-in that waits for its second factor. */
export const signedInSchema = z.object({
  user: userViewSchema,
  accessToken: z.string(),
  refreshToken: z.string(),
  expiresIn: z.int().meta({ description: 'How long the access token is valid, in seconds' }),
  deviceToken: z.string().optional().meta({
    description:
      'Send it with later sign-ins from this device: failed attempts from elsewhere then do not rate-limit the device',
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

/** The client, as described by its request. */
export const clientOf = (
  call: Pick<Call, 'headers' | 'address' | 'caller' | 'requestId' | 'signal'>,
  deviceToken?: string | undefined,
): ClientInfo => ({
  userAgent: call.headers.get('user-agent'),
  address: call.address,
  deviceToken: deviceToken ?? null,
  request: hookedRequest(call),
})

export const userIdOf = (caller: Caller): string => requireUser(caller).auth.id

/** Signing in to the API: every account may. */
export const apiTarget = ({ open }: Pick<Sessions, 'open'>): SignInTarget<SignedIn> => ({
  name: 'api',
  admit: () => {},
  requiresFactor: () => false,
  open,
})

/** Factors that a response lists at most. */
const factorsShown = 10

export function createCompleteSignIn<Result>(deps: {
  dialect: Dialect
  oneTimeTokens: OneTimeTokens
  target: SignInTarget<Result>
}): CompleteSignIn<Result> {
  const { dialect, oneTimeTokens, target } = deps
  return async (tx, account, client, { isStrong = false } = {}) => {
    if (account.disabledAtMs !== null) throw accountDisabled()
    target.admit(account)
    if (!isStrong) {
      const factors = await tx.all<{ id: string }>(
        sql`SELECT id FROM ${usersTable(dialect, 'factors')}
          WHERE user_id = ${account.id} AND confirmed_at IS NOT NULL ORDER BY id LIMIT ${factorsShown}`,
      )
      if (factors.length > 0 || target.requiresFactor()) {
        const data: TicketData = { target: target.name, enrolls: factors.length === 0 }
        const input = {
          purpose: 'mfa-ticket',
          userId: account.id,
          data: { ...data },
          lifetimeMs: mfaTicketLifetimeMs,
        } as const
        const mfaTicket = await oneTimeTokens.issue(tx, input)
        return { mfaRequired: true, mfaTicket, factors: factors.map(({ id }) => ({ id, type: 'totp' })) }
      }
    }
    return target.open(tx, account, client)
  }
}
