/**
 * Requires a recent sign-in for changes that a stolen access token must not make: adding or removing a sign-in method,
 * and moving the account to another address.
 */
import type { UserCaller } from '../../../access/caller.ts'
import type { Clock } from '../../../base/clock.ts'
import type { Dialect } from '../../../engines/sql/dialect.ts'
import type { Reader } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { signInAgain } from '../../../errors.ts'
import { recentSignInMs } from '../../../limits/users.ts'
import { usersTable } from '../migrations.ts'

/** The calling user and session. A token without a session was signed with the server's secret, not at a sign-in. */
export type SessionCaller = Pick<UserCaller, 'auth' | 'sessionId'>

/**
 * Rejects with 403 `Sign in again` unless the session of the caller began in the last ten minutes, whatever protects
 * the account: a sign-in method that a stolen token adds outlives that token. Anonymous users are exempt because they
 * have no way to sign in again.
 */
export async function requireRecentSignIn(
  on: Reader,
  { dialect, clock }: { readonly dialect: Dialect; readonly clock: Clock },
  { auth: { id }, sessionId }: SessionCaller,
): Promise<void> {
  if (sessionId === null) return
  const [exempt] = await on.all(
    sql`SELECT 1 AS yes FROM ${usersTable(dialect, 'sessions')}
      WHERE id = ${sessionId} AND user_id = ${id} AND created_at >= ${clock.now() - recentSignInMs}
      UNION ALL SELECT 1 FROM ${usersTable(dialect, 'users')} WHERE id = ${id} AND is_anonymous = 1 LIMIT 1`,
  )
  if (!exempt) throw signInAgain()
}
