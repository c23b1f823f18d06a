/**
 * Authenticates bearer tokens. A token is verified once and cached; its session and user are read again every few
 * seconds, or at the next request after a revocation. A cache hit costs one map lookup, keyed by the whole header:
 * extracting the token costs more than the lookup.
 */
import type { Auth, UserCaller } from '../../../access/caller.ts'
import type { Clock } from '../../../base/clock.ts'
import { createLru } from '../../../base/concurrency/lru.ts'
import type { Database } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { invalidToken, tokenExpired } from '../../../errors.ts'
import { parseBearer } from '../../../http/security/authorization.ts'
import { tokenCacheEntriesMax } from '../../../limits/api.ts'
import { sessionCheckMs } from '../../../limits/users.ts'
import type { AccountHooks } from '../hooks/account-hooks.ts'
import { usersTable, usersTableAs } from '../migrations.ts'
import type { Revocation, RevocationEpoch } from './revocation.ts'
import { sealClaims, type Tokens, type VerifiedToken, verifiedEmail } from './tokens.ts'

/** The caller of a bearer token; throws or rejects with 401. Returns a promise only if a query is needed. */
export type Authenticate = (token: string) => UserCaller | Promise<UserCaller>

export interface Authentication {
  readonly authenticate: Authenticate
  /** As `authenticate`, with the token in an `Authorization` header. */
  readonly authenticateHeader: (authorization: string) => UserCaller | Promise<UserCaller>
  /**
   * The caller with the current role, claims and email of the user, for connections that outlive a request: a token
   * keeps the role and claims of its issue. Rejects with 401 if the session has ended.
   */
  refreshClaims(caller: UserCaller): Promise<UserCaller>
}

/** Claims read from the account instead of the token. */
type Claims = Pick<Auth, 'role' | 'custom' | 'email' | 'emailVerified'>

interface CachedToken extends VerifiedToken {
  epoch: RevocationEpoch
  /** Value of the epoch when the session was last read. */
  checkedEpoch: number
  checkedAtMs: number
}

export function createAuthentication(deps: {
  database: Database
  tokens: Tokens
  revocation: Revocation
  hooks: Pick<AccountHooks, 'customOf'>
  clock: Clock
}): Authentication {
  const { database, tokens, revocation, hooks, clock } = deps
  const { dialect } = database
  /** Valid tokens, keyed by their header, `Bearer <token>`. */
  const known = createLru<string, CachedToken>(tokenCacheEntriesMax)

  /**
   * Current role, claims and verified email of the user; null if the session has ended or the user was disabled or
   * deleted. A token without a session keeps its own claims.
   */
  async function findClaims({ auth, sessionId }: UserCaller): Promise<Claims | null> {
    if (sessionId === null) {
      // Signed with the server secret; the user need not exist.
      const [row] = await database.all<{ disabled_at: unknown }>(
        sql`SELECT disabled_at FROM ${usersTable(dialect, 'users')} WHERE id = ${auth.id}`,
      )
      return row === undefined || row.disabled_at === null ? auth : null
    }
    const [row] = await database.all<{
      role: string
      custom_claims: string
      hook_claims: string | null
      email: string | null
      email_verified_at: unknown
    }>(
      sql`SELECT u.role, u.custom_claims, u.hook_claims, u.email, u.email_verified_at FROM ${usersTableAs(dialect, 'sessions', 's')}
        JOIN ${usersTableAs(dialect, 'users', 'u')} ON u.id = s.user_id
        WHERE s.id = ${sessionId} AND s.user_id = ${auth.id} AND s.expires_at > ${clock.now()}
        AND u.disabled_at IS NULL`,
    )
    if (!row) return null
    const { role, email, email_verified_at: verifiedAt } = row
    const hookClaims = row.hook_claims === null ? null : JSON.parse(row.hook_claims)
    const custom = hooks.customOf({ customClaims: JSON.parse(row.custom_claims), hookClaims })
    return { role, custom: sealClaims(custom), ...verifiedEmail(email, verifiedAt !== null) }
  }

  async function check(header: string, verified: VerifiedToken): Promise<UserCaller> {
    const { caller } = verified
    const epoch = revocation.epochOf(caller.auth.id)
    // Read before the query, so that a revocation during the query invalidates its result.
    const checkedEpoch = epoch.value
    const checkedAtMs = clock.now()
    const claims = await findClaims(caller)
    if (!claims) {
      known.delete(header)
      throw invalidToken()
    }
    const current = withEmail(caller, claims)
    known.set(header, { ...verified, caller: current, epoch, checkedEpoch, checkedAtMs })
    return current
  }

  function authenticateKnown(header: string, entry: CachedToken): UserCaller | Promise<UserCaller> {
    const nowMs = clock.now()
    if (nowMs >= entry.expiresAtMs) {
      known.delete(header)
      throw tokenExpired()
    }
    const ageMs = nowMs - entry.checkedAtMs
    const isFresh = ageMs < sessionCheckMs && ageMs >= 0 && entry.checkedEpoch === entry.epoch.value
    return isFresh ? entry.caller : check(header, entry)
  }

  const authenticate: Authenticate = (token) => {
    const header = `Bearer ${token}`
    const entry = known.get(header)
    return entry
      ? authenticateKnown(header, entry)
      : tokens.verifyAccess(token).then((verified) => check(header, verified))
  }

  return {
    authenticate,
    authenticateHeader(authorization) {
      const entry = known.get(authorization)
      return entry ? authenticateKnown(authorization, entry) : authenticate(parseBearer(authorization))
    },
    async refreshClaims(caller) {
      const claims = await findClaims(caller)
      if (!claims) throw invalidToken()
      return Object.freeze({ ...caller, auth: Object.freeze({ ...caller.auth, ...claims }) })
    },
  }
}

/**
 * The caller with the current email of the account. Verification and changes of the address apply at once; role and
 * claims stay those of the token.
 */
function withEmail(caller: UserCaller, { email, emailVerified }: Claims): UserCaller {
  const { auth } = caller
  if (auth.email === email && auth.emailVerified === emailVerified) return caller
  return Object.freeze({ ...caller, auth: Object.freeze({ ...auth, email, emailVerified }) })
}
