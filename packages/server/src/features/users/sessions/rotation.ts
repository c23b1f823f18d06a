/**
 * Rotation of refresh tokens. Each refresh replaces the token, and reuse of an old one ends the session. Only hashes of
 * refresh tokens are stored; a token can be recreated from the values of its row.
 */
import type { Clock } from '../../../base/clock.ts'
import { sha256 } from '../../../base/crypto/hash.ts'
import type { Database, Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { refreshGraceMs, refreshTokenLifetimeMs } from '../../../limits/users.ts'
import type { Accounts } from '../accounts/accounts.ts'
import type { ClientInfo } from '../accounts/client-info.ts'
import type { AccountHooks } from '../hooks/account-hooks.ts'
import { msOf, usersTable } from '../migrations.ts'
import { type SessionRow, type SessionRows, userAgentOf } from './session-rows.ts'
import { type SignedIn, signedIn } from './signed-in.ts'
import type { SigningKeys } from './signing-keys.ts'
import type { Tokens } from './tokens.ts'

export interface RotationDeps {
  readonly database: Database
  readonly rows: SessionRows
  readonly accounts: Accounts
  readonly hooks: Pick<AccountHooks, 'hasClaims'>
  readonly tokens: Tokens
  readonly keys: SigningKeys
  readonly clock: Clock
}

/**
 * Rotates the refresh token with this hash. Null for a rejected token. The caller must commit either way: detected
 * reuse has ended the session. To be called in `hooks.write`.
 */
export type RotateToken = (
  tx: Transaction,
  session: { readonly sessionId: string; readonly userId: string },
  hash: string,
  client: ClientInfo,
) => Promise<SignedIn | null>

export function createRotation({ database, rows, accounts, hooks, tokens, keys, clock }: RotationDeps): RotateToken {
  const { dialect } = database
  const sessions = usersTable(dialect, 'sessions')

  /** The newest token once more, or null when its key is gone. */
  function remake(row: SessionRow): string | null {
    const key = keys.find(row.key_id)
    const { id: sessionId, user_id: userId, generation } = row
    const issuedAtMs = msOf(row.rotated_at)
    const token = key && tokens.signRefresh({ userId, sessionId, generation, issuedAtMs, key })
    return token !== null && sha256(token) === row.refresh_hash ? token : null
  }

  async function rotate(tx: Transaction, row: SessionRow, client: ClientInfo): Promise<string> {
    const generation = row.generation + 1
    const content = { userId: row.user_id, sessionId: row.id, generation, issuedAtMs: clock.now(), key: keys.current() }
    const token = tokens.signRefresh(content)
    const { issuedAtMs, key } = content
    await tx.run(sql`UPDATE ${sessions} SET generation = ${generation}, refresh_hash = ${sha256(token)},
      previous_hash = ${row.refresh_hash}, key_id = ${key.id}, rotated_at = ${issuedAtMs}, used_at = ${issuedAtMs},
      expires_at = ${issuedAtMs + refreshTokenLifetimeMs}, user_agent = ${userAgentOf(client)},
      address = ${client.address} WHERE id = ${row.id} AND generation = ${row.generation}`)
    return token
  }

  return async (tx, session, hash, client) => {
    // Claims are stored with the account. Lock order, here and everywhere: accounts before sessions.
    if (hooks.hasClaims()) await accounts.find(tx, session.userId, 'lock')
    const [row] = await tx.all<SessionRow>(
      sql`SELECT * FROM ${sessions} WHERE id = ${session.sessionId} AND user_id = ${session.userId}${dialect.forUpdate}`,
    )
    if (!row || msOf(row.expires_at) <= clock.now()) return null
    const isGraceReuse = row.previous_hash === hash && clock.now() - msOf(row.rotated_at) <= refreshGraceMs
    if (row.refresh_hash !== hash && !isGraceReuse) {
      await rows.end(tx, row.user_id, row.id)
      return null
    }
    const account = await accounts.find(tx, row.user_id)
    if (!account || account.disabledAtMs !== null) return null
    const custom = await accounts.claimsForToken(tx, account, client.request)
    const token = isGraceReuse ? remake(row) : await rotate(tx, row, client)
    return token === null ? null : signedIn(tokens, account, { custom, sessionId: row.id, refreshToken: token })
  }
}
