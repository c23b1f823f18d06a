/**
 * First verification of a mailbox. Anyone can sign up with an address they do not own and wait for its owner
 * (pre-hijacking), so verification removes every credential set up before it, unless it came from a session of the
 * account.
 */
import type { Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import type { Account } from '../accounts/account.ts'
import type { HookedRequest } from '../hooks/hooked-request.ts'
import { type UsersTable, usersTable } from '../migrations.ts'
import type { UsersParts } from '../parts.ts'

/** How ownership of the mailbox was proved. */
export interface Proof {
  /** The verified address, if it replaces that of the account. Verification of the old address does not apply to it. */
  readonly newEmail?: string
  /** Whether the request had an access token of the account; then no credential is removed. */
  readonly isOwnSession?: boolean
  /** The request, which may upgrade an anonymous account. */
  readonly request?: HookedRequest
}

export interface EmailOwnership {
  /**
   * Marks the address of an account as verified and applies further changes. `account` was read with a lock in this
   * transaction. The first verification of an address removes every other credential: sessions, password, identities,
   * factors, recovery codes, passkeys and pending one-time tokens. It keeps a password that an administrator set for
   * this address. Rejects with 409 if the last owner of the dashboard would lose access.
   */
  claim(tx: Transaction, account: Account, proof?: Proof, changes?: Partial<Account>): Promise<Account>
}

/** Tables of sign-in methods and second factors. */
const credentials: readonly UsersTable[] = ['identities', 'factors', 'recovery_codes', 'passkeys']

type Deps = Pick<UsersParts, 'database' | 'accounts' | 'lastOwner' | 'sessions' | 'oneTimeTokens' | 'clock'>

export function createEmailOwnership({
  database,
  accounts,
  lastOwner,
  sessions,
  oneTimeTokens,
  clock,
}: Deps): EmailOwnership {
  const { dialect } = database

  async function removeCredentials(tx: Transaction, userId: string): Promise<void> {
    for (const name of credentials)
      await tx.run(sql`DELETE FROM ${usersTable(dialect, name)} WHERE user_id = ${userId}`)
    await oneTimeTokens.removeAll(tx, userId)
    await sessions.endAll(tx, userId)
  }

  return {
    async claim(tx, account, { newEmail, isOwnSession = false, request } = {}, changes = {}) {
      const isFirst = newEmail !== undefined || account.emailVerifiedAtMs === null
      if (!isFirst) return Object.keys(changes).length > 0 ? accounts.update(tx, account, changes) : account
      if (!isOwnSession) await removeCredentials(tx, account.id)
      // The password of an administrator applied to the old address only.
      const keepsPassword = isOwnSession || (newEmail === undefined && account.isAdminPassword)
      const verified = {
        ...(keepsPassword ? {} : { passwordHash: null }),
        ...(newEmail === undefined ? {} : { email: newEmail, isAdminPassword: false, isAnonymous: false }),
        emailVerifiedAtMs: clock.now(),
        ...changes,
      }
      const claimed = await accounts.update(tx, account, verified, request && { provider: 'email', request })
      await lastOwner.checkRemains(tx, account)
      return claimed
    },
  }
}
