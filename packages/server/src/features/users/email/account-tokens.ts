/** One-time tokens that act on an existing account, and the sessions that may use them. */
import type { Caller } from '../../../access/caller.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { invalidToken, notFound } from '../../../errors.ts'
import type { Account } from '../accounts/account.ts'
import { usersTable } from '../migrations.ts'
import type { UsersParts } from '../parts.ts'
import type { Purpose, TokenSubject } from './one-time-tokens.ts'

export interface RedeemedToken {
  readonly account: Account
  readonly subject: TokenSubject
}

export interface AccountTokens {
  /** Throws 404. */
  getAccount(userId: string): Promise<Account>
  /**
   * Redeems a token and locks its account. Rejects with 401 if either is unavailable, or if the token no longer matches
   * the state of the account according to `fits`.
   */
  redeem(
    tx: Transaction,
    purpose: Purpose,
    token: string,
    fits: (account: Account, known: TokenSubject) => boolean,
  ): Promise<RedeemedToken>
  /** Whether the requesting session is active: a revoked session must not complete its requests. */
  isSessionActive(tx: Transaction, userId: string, sessionId: string | null): Promise<boolean>
  /** Whether the caller is signed in to the account. Reads the session again, since it may have ended meanwhile. */
  hasOwnSession(tx: Transaction, caller: Caller, account: Account): Promise<boolean>
}

type Deps = Pick<UsersParts, 'database' | 'accounts' | 'oneTimeTokens' | 'clock'>

export function createAccountTokens({ database, accounts, oneTimeTokens, clock }: Deps): AccountTokens {
  async function isSessionActive(tx: Transaction, userId: string, sessionId: string | null): Promise<boolean> {
    // Tokens signed with the server secret have no session.
    if (sessionId === null) return true
    const [found] = await tx.all(
      sql`SELECT 1 AS yes FROM ${usersTable(database.dialect, 'sessions')}
        WHERE id = ${sessionId} AND user_id = ${userId} AND expires_at > ${clock.now()}`,
    )
    return found !== undefined
  }

  return {
    async getAccount(userId) {
      const account = await accounts.find(database, userId)
      if (!account) throw notFound('User')
      return account
    },

    async redeem(tx, purpose, token, fits) {
      const known = await oneTimeTokens.find(tx, purpose, token)
      const account = known?.userId ? await accounts.find(tx, known.userId, 'lock') : null
      if (!known || !account || !fits(account, known)) throw invalidToken()
      const subject = await oneTimeTokens.redeem(tx, purpose, token)
      if (!subject) throw invalidToken()
      return { account, subject }
    },

    isSessionActive,

    async hasOwnSession(tx, caller, account) {
      if (caller.kind !== 'user' || caller.auth.id !== account.id) return false
      return isSessionActive(tx, account.id, caller.sessionId)
    },
  }
}
