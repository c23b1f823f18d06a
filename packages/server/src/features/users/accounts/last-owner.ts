/**
 * The last owner of the dashboard: an owner remains who is not disabled and can sign in to the dashboard. Everything
 * that takes an owner the account, the role or a credential checks it here, after its change and in its transaction.
 */
import { ownerRole } from '../../../access/dashboard-roles.ts'
import type { Dialect } from '../../../engines/sql/dialect.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { conflict } from '../../../errors.ts'
import { usersTableAs } from '../migrations.ts'
import type { Account } from './account.ts'

export interface LastOwner {
  /**
   * To be called after a change that may have taken `before` access to the dashboard, with the row of the account
   * locked. Rejects with 409 if no owner who can sign in is left.
   */
  checkRemains(tx: Transaction, before: Account): Promise<void>
}

export interface LastOwnerDeps {
  readonly dialect: Dialect
  /** Whether passkeys are a way to sign in. */
  readonly hasPasskeys: () => boolean
  /** Only for a command in a shell, on request. */
  readonly mayEnd: boolean
}

export function createLastOwner({ dialect, hasPasskeys, mayEnd }: LastOwnerDeps): LastOwner {
  /** The sign-in methods of the dashboard; an identity or a mailbox is none. */
  const canSignIn = () => {
    const password = sql`(u.password_hash IS NOT NULL AND u.email IS NOT NULL)`
    if (!hasPasskeys()) return password
    const passkeys = usersTableAs(dialect, 'passkeys', 'p')
    return sql`(${password} OR EXISTS (SELECT 1 FROM ${passkeys} WHERE p.user_id = u.id))`
  }

  return {
    async checkRemains(tx, before) {
      if (mayEnd || before.dashboardRole !== ownerRole || before.disabledAtMs !== null) return
      // Two changes at once would each count the other's owner. Taken after the row, by everyone.
      await tx.lock('users last owner')
      const [owner] = await tx.all(sql`SELECT 1 FROM ${usersTableAs(dialect, 'users', 'u')}
        WHERE u.dashboard_role = ${ownerRole} AND u.disabled_at IS NULL AND ${canSignIn()} LIMIT 1`)
      if (!owner)
        throw conflict('The last owner must stay one and be able to sign in; make another user an owner first')
    },
  }
}

/** Whether a change of the row may have taken an owner access to the dashboard. */
export const takesAccess = (before: Account, after: Account): boolean =>
  after.dashboardRole !== before.dashboardRole ||
  (after.disabledAtMs !== null && before.disabledAtMs === null) ||
  (after.passwordHash === null && before.passwordHash !== null) ||
  (after.email === null && before.email !== null)
