/**
 * What it means that somebody has shown a mailbox to be theirs. Anybody can sign up with anybody's address and wait
 * inside for its owner (pre-hijacking): what was set up before the first proof is worth nothing after it.
 */
import type { Transaction } from '../../engines/sql.ts'
import { sql } from '../../engines/sql-text.ts'
import type { Account } from './accounts.ts'
import type { UsersParts } from './parts.ts'
import { type UsersTable, usersTable } from './tables.ts'

export interface EmailOwnership {
  /**
   * Hands the account, read with a lock in this transaction, to whoever holds its mailbox, with further changes. If
   * nobody has shown that before, every other way in ends: password, sessions, identities, factors, recovery codes,
   * passkeys, and whatever was issued for the account.
   */
  claim(tx: Transaction, account: Account, changes?: Partial<Account>): Promise<Account>
}

/** Ways into an account, and what stands in the way. */
const credentials: readonly UsersTable[] = ['identities', 'factors', 'recovery_codes', 'passkeys']

type Deps = Pick<UsersParts, 'database' | 'accounts' | 'sessions' | 'oneTimeTokens' | 'clock'>

export function createEmailOwnership({ database, accounts, sessions, oneTimeTokens, clock }: Deps): EmailOwnership {
  const { dialect } = database
  return {
    async claim(tx, account, changes = {}) {
      const isFirst = account.emailVerifiedAtMs === null
      if (isFirst) {
        for (const name of credentials)
          await tx.run(sql`DELETE FROM ${usersTable(dialect, name)} WHERE user_id = ${account.id}`)
        await oneTimeTokens.removeAll(tx, account.id)
        await sessions.endAll(tx, account.id)
      }
      const claimed = { ...(isFirst ? { passwordHash: null, emailVerifiedAtMs: clock.now() } : {}), ...changes }
      return Object.keys(claimed).length > 0 ? accounts.update(tx, account, claimed) : account
    },
  }
}
