/**
 * The first proof of a mailbox. Anyone can sign up with any address and wait inside for its owner (pre-hijacking), so
 * whatever was set up before the proof is worth nothing after it, unless the proof came from the account's own session.
 */
import type { Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import type { Account } from '../accounts/accounts.ts'
import type { UsersParts } from '../parts.ts'
import { type UsersTable, usersTable } from '../tables.ts'

/** How a mailbox was proved. */
export interface Proof {
  /** The address that was proved, where it is to replace the account's; no proof of the old address counts for it. */
  readonly newEmail?: string
  /** Whether the request carried a token of the account: its session was there before, so nothing ends. */
  readonly isOwnSession?: boolean
}

export interface EmailOwnership {
  /**
   * Marks the address of an account as verified, with further changes. `account` was read with a lock in this
   * transaction. On the first proof of an address every other way in ends: sessions, password, identities, factors,
   * recovery codes, passkeys and pending one-time tokens. A password that an administrator set for this address stays.
   */
  claim(tx: Transaction, account: Account, proof?: Proof, changes?: Partial<Account>): Promise<Account>
}

/** Ways into an account, and what guards them. */
const credentials: readonly UsersTable[] = ['identities', 'factors', 'recovery_codes', 'passkeys']

type Deps = Pick<UsersParts, 'database' | 'accounts' | 'sessions' | 'oneTimeTokens' | 'clock'>

export function createEmailOwnership({ database, accounts, sessions, oneTimeTokens, clock }: Deps): EmailOwnership {
  const { dialect } = database

  async function endEverything(tx: Transaction, userId: string): Promise<void> {
    for (const name of credentials)
      await tx.run(sql`DELETE FROM ${usersTable(dialect, name)} WHERE user_id = ${userId}`)
    await oneTimeTokens.removeAll(tx, userId)
    await sessions.endAll(tx, userId)
  }

  return {
    async claim(tx, account, { newEmail, isOwnSession = false } = {}, changes = {}) {
      const isFirst = newEmail !== undefined || account.emailVerifiedAtMs === null
      if (!isFirst) return Object.keys(changes).length > 0 ? accounts.update(tx, account, changes) : account
      if (!isOwnSession) await endEverything(tx, account.id)
      // An administrator's password was meant for the old address.
      const keepsPassword = isOwnSession || (newEmail === undefined && account.isAdminPassword)
      return accounts.update(tx, account, {
        ...(keepsPassword ? {} : { passwordHash: null }),
        ...(newEmail === undefined ? {} : { email: newEmail, isAdminPassword: false, isAnonymous: false }),
        emailVerifiedAtMs: clock.now(),
        ...changes,
      })
    },
  }
}
