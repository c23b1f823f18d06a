/**
 * What a stolen token must not do: add a way into an account that asks for more than a password, or take away what it
 * asks for. Owns when a sign-in is recent; what needs one is for those who ask.
 */
import type { UserCaller } from '../../access/caller.ts'
import type { Clock } from '../../base/clock.ts'
import type { Dialect } from '../../engines/dialect.ts'
import type { Reader } from '../../engines/sql.ts'
import { sql } from '../../engines/sql-text.ts'
import { signInAgain } from '../../errors.ts'
import { recentSignInMs } from '../../limits-users.ts'
import { usersTable } from './tables.ts'

/** Who asks, as their token tells; a token without a session was made by whoever has the secret. */
export type Asker = Pick<UserCaller, 'auth' | 'sessionId'>

/**
 * Rejects with 403 `Sign in again` where a second factor or a passkey guards the account, unless the asker's session
 * began at most ten minutes ago.
 */
export async function needRecentSignIn(
  on: Reader,
  { dialect, clock }: { readonly dialect: Dialect; readonly clock: Clock },
  { auth: { id }, sessionId }: Asker,
): Promise<void> {
  if (sessionId === null) return
  const [recent] = await on.all(
    sql`SELECT 1 AS yes FROM ${usersTable(dialect, 'sessions')}
      WHERE id = ${sessionId} AND user_id = ${id} AND created_at >= ${clock.now() - recentSignInMs}`,
  )
  if (recent) return
  const [guard] = await on.all(
    sql`SELECT 1 AS yes FROM ${usersTable(dialect, 'factors')} WHERE user_id = ${id} AND confirmed_at IS NOT NULL
      UNION ALL SELECT 1 FROM ${usersTable(dialect, 'passkeys')} WHERE user_id = ${id} LIMIT 1`,
  )
  if (guard) throw signInAgain()
}
