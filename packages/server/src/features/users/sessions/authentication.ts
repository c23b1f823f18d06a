/**
 * From a bearer token to a caller, for every request: the token is verified once, and its session and user are asked
 * for again every few seconds, or at once when `revocation` has something to say. A hit costs one look-up.
 */
import type { Auth, UserCaller } from '../../../access/caller.ts'
import type { Clock } from '../../../base/clock.ts'
import { createLru } from '../../../base/concurrency/lru.ts'
import type { Database } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { invalidToken, tokenExpired } from '../../../errors.ts'
import { tokenCacheEntriesMax } from '../../../limits/api.ts'
import { sessionCheckMs } from '../../../limits/users.ts'
import { usersTable, usersTableAs } from '../tables.ts'
import type { Revocation, RevocationEpoch } from './revocation.ts'
import { sealClaims, type Tokens, type VerifiedToken, verifiedEmail } from './tokens.ts'

/** The caller a bearer token proves; throws or rejects with a 401. A promise only where something must be asked. */
export type Authenticate = (token: string) => UserCaller | Promise<UserCaller>

export interface Authentication {
  readonly authenticate: Authenticate
  /**
   * The caller with the role, the claims and the e-mail that the user has now, for what stays open longer than a
   * request: a token keeps the role and the claims it was made with. Rejects with 401 once the session has ended.
   */
  refreshClaims(caller: UserCaller): Promise<UserCaller>
}

/** What of a user is read from the account rather than believed of a token. */
type Claims = Pick<Auth, 'role' | 'custom' | 'email' | 'emailVerified'>

interface Known extends VerifiedToken {
  standing: RevocationEpoch
  /** Of the standing when the session was last asked for. */
  epoch: number
  checkedAtMs: number
}

export function createAuthentication(deps: {
  database: Database
  tokens: Tokens
  revocation: Revocation
  clock: Clock
}): Authentication {
  const { database, tokens, revocation, clock } = deps
  const { dialect } = database
  const known = createLru<string, Known>(tokenCacheEntriesMax)

  /**
   * Role, claims and verified e-mail of the user now; null when the session has ended, or the user is disabled or
   * deleted. A token without a session is believed as it says.
   */
  async function findClaims({ auth, sessionId }: UserCaller): Promise<Claims | null> {
    if (sessionId === null) {
      // Made by whoever has the secret; the user need not exist.
      const [row] = await database.all<{ disabled_at: unknown }>(
        sql`SELECT disabled_at FROM ${usersTable(dialect, 'users')} WHERE id = ${auth.id}`,
      )
      return row === undefined || row.disabled_at === null ? auth : null
    }
    const [row] = await database.all<{
      role: string
      custom_claims: string
      email: string | null
      email_verified_at: unknown
    }>(
      sql`SELECT u.role, u.custom_claims, u.email, u.email_verified_at FROM ${usersTableAs(dialect, 'sessions', 's')}
        JOIN ${usersTableAs(dialect, 'users', 'u')} ON u.id = s.user_id
        WHERE s.id = ${sessionId} AND s.user_id = ${auth.id} AND s.expires_at > ${clock.now()}
        AND u.disabled_at IS NULL`,
    )
    if (!row) return null
    const { role, custom_claims: custom, email, email_verified_at: verifiedAt } = row
    return { role, custom: sealClaims(JSON.parse(custom)), ...verifiedEmail(email, verifiedAt !== null) }
  }

  async function check(token: string, believed: VerifiedToken): Promise<UserCaller> {
    const { caller } = believed
    const standing = revocation.epochOf(caller.auth.id)
    // Read before the question: an answer that a revocation overtakes is not kept.
    const { epoch } = standing
    const checkedAtMs = clock.now()
    const claims = await findClaims(caller)
    if (!claims) {
      known.delete(token)
      throw invalidToken()
    }
    const current = withEmail(caller, claims)
    known.set(token, { ...believed, caller: current, standing, epoch, checkedAtMs })
    return current
  }

  const authenticate: Authenticate = (token) => {
    const entry = known.get(token)
    if (!entry) return tokens.verifyAccess(token).then((believed) => check(token, believed))
    const nowMs = clock.now()
    if (nowMs >= entry.expiresAtMs) {
      known.delete(token)
      throw tokenExpired()
    }
    const ageMs = nowMs - entry.checkedAtMs
    const isFresh = ageMs < sessionCheckMs && ageMs >= 0 && entry.epoch === entry.standing.epoch
    return isFresh ? entry.caller : check(token, entry)
  }

  return {
    authenticate,
    async refreshClaims(caller) {
      const claims = await findClaims(caller)
      if (!claims) throw invalidToken()
      return Object.freeze({ ...caller, auth: Object.freeze({ ...caller.auth, ...claims }) })
    },
  }
}

/**
 * The caller with the account's e-mail: an address that was verified, unverified or changed since the token was signed
 * counts at once, whereas role and claims stay those of the token.
 */
function withEmail(caller: UserCaller, { email, emailVerified }: Claims): UserCaller {
  const { auth } = caller
  if (auth.email === email && auth.emailVerified === emailVerified) return caller
  return Object.freeze({ ...caller, auth: Object.freeze({ ...auth, email, emailVerified }) })
}
