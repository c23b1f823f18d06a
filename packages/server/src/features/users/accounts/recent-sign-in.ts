/**
 * What a stolen token must not do: add a way into an account, take one away, or move the account to another address.
 * Owns when a sign-in is recent; what needs one is for those who ask.
 */
import type { UserCaller } from '../../../access/caller.ts'
import type { Clock } from '../../../base/clock.ts'
import type { Dialect } from '../../../engines/sql/dialect.ts'
import type { Reader } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { signInAgain } from '../../../errors.ts'
import { recentSignInMs } from '../../../limits/users.ts'
import { usersTable } from '../tables.ts'

/** Who asks, as their token tells; a token without a session was made by whoever has the secret. */
export type SessionCaller = Pick<UserCaller, 'auth' | 'sessionId'>

/**
 * Rejects with 403 `Sign in again` unless the caller's session began at most ten minutes ago, whatever guards the
 * account: a way in that a stolen token adds stays when the token has expired. Anonymous users are exempt, since they
 * have nothing to sign in again with.
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
