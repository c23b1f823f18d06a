/** Prevents users from removing their last sign-in method. */
import type { Dialect } from '../../../engines/sql/dialect.ts'
import type { Reader } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { usersTable } from '../migrations.ts'
import type { Account } from './account.ts'

/**
 * Whether the account has a sign-in method: a password, a verified email (if the server sends mail), an identity or a
 * passkey.
 */
export async function hasSignInMethod(
  on: Reader,
  dialect: Dialect,
  account: Account,
  sendsMail = true,
): Promise<boolean> {
  if (account.passwordHash !== null) return true
  if (sendsMail && account.email !== null && account.emailVerifiedAtMs !== null) return true
  const [found] = await on.all(
    sql`SELECT 1 FROM ${usersTable(dialect, 'identities')} WHERE user_id = ${account.id}
      UNION ALL SELECT 1 FROM ${usersTable(dialect, 'passkeys')} WHERE user_id = ${account.id} LIMIT 1`,
  )
  return found !== undefined
}
