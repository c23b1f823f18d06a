/** What the areas of the users feature are built from: one set of parts, made in `index`, handed to each of them. */
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { AuthConfig } from '../../config/sections/auth/auth.ts'
import type { Database } from '../../engines/sql/sql.ts'
import type { Accounts } from './accounts/accounts.ts'
import type { Attempts } from './accounts/attempts.ts'
import type { Passwords } from './accounts/passwords.ts'
import type { Mailer } from './email/mailer.ts'
import type { OneTimeTokens } from './email/one-time-tokens.ts'
import type { CompleteSignIn } from './sessions/complete-sign-in.ts'
import type { Revocation } from './sessions/revocation.ts'
import type { Sessions } from './sessions/sessions.ts'

export interface UsersParts {
  /** Of the namespace `shared`. */
  readonly database: Database
  readonly accounts: Accounts
  readonly passwords: Passwords
  readonly completeSignIn: CompleteSignIn
  readonly sessions: Sessions
  readonly oneTimeTokens: OneTimeTokens
  readonly mailer: Mailer
  readonly revocation: Revocation
  readonly attempts: Attempts
  readonly clock: Clock
  readonly log: Log
  /** The server's secret; derive a key of one's own from it under a label of one's own. */
  readonly secret: string
  /** The configuration now being served. */
  readonly config: () => AuthConfig
  /** Where browsers reach the server, without a slash at the end; null while it is not known. Never from a header. */
  readonly publicUrl: () => string | null
}
