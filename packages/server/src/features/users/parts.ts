/** The services that the areas of the users feature share. `index` creates one set and passes it to each area. */
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { AuthConfig } from '../../config/sections/auth/auth.ts'
import type { Database } from '../../engines/sql/sql.ts'
import type { Accounts } from './accounts/accounts.ts'
import type { Attempts } from './accounts/attempts.ts'
import type { LastOwner } from './accounts/last-owner.ts'
import type { Passwords } from './accounts/passwords.ts'
import type { Mailer } from './email/mailer.ts'
import type { OneTimeTokens } from './email/one-time-tokens.ts'
import type { AccountHooks } from './hooks/account-hooks.ts'
import type { CompleteSignIn } from './sessions/complete-sign-in.ts'
import type { Revocation } from './sessions/revocation.ts'
import type { Sessions } from './sessions/sessions.ts'

export interface UsersParts {
  /** The database of the namespace `shared`. */
  readonly database: Database
  readonly accounts: Accounts
  readonly lastOwner: LastOwner
  /** Runs the transactions that create accounts or issue tokens. */
  readonly hooks: AccountHooks
  readonly passwords: Passwords
  readonly completeSignIn: CompleteSignIn
  readonly sessions: Sessions
  readonly oneTimeTokens: OneTimeTokens
  readonly mailer: Mailer
  readonly revocation: Revocation
  readonly attempts: Attempts
  readonly clock: Clock
  readonly log: Log
  /** The server's secret. Each use derives its own key from it under its own label. */
  readonly secret: string
  /** The current configuration; a reload replaces it. */
  readonly config: () => AuthConfig
  /** Public URL of the server, without a trailing slash; null if unknown. Never taken from a request header. */
  readonly publicUrl: () => string | null
}
