/**
 * Sessions: one per sign-in, kept alive by a chain of rotating refresh tokens. Owns `_sessions`, rotation and the
 * detection of reuse. Only hashes of refresh tokens are stored; a token can be recreated from the values of its row.
 */
import type { Clock } from '../../../base/clock.ts'
import { sha256 } from '../../../base/crypto/hash.ts'
import { createUuid7 } from '../../../base/crypto/ids.ts'
import { formatDatetime } from '../../../base/text/datetime.ts'
import { isStorableText } from '../../../base/text/text.ts'
import type { Database, Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { invalidToken } from '../../../errors.ts'
import { refreshGraceMs, refreshTokenLifetimeMs, sessionsPerUserMax, userAgentCharsMax } from '../../../limits/users.ts'
import type { Account, Accounts } from '../accounts/accounts.ts'
import type { Attempts } from '../accounts/attempts.ts'
import type { ClientInfo } from '../accounts/client-info.ts'
import { type UserView, userView } from '../accounts/user-view.ts'
import { msOf, usersTable } from '../migrations.ts'
import type { Revocation } from './revocation.ts'
import type { SigningKeys } from './signing-keys.ts'
import type { Tokens } from './tokens.ts'

/** Result of a completed sign-in. */
export interface SignedIn {
  readonly user: UserView
  readonly accessToken: string
  readonly refreshToken: string
  /** Present for users with an address; gives the device its own rate limit at later sign-ins (`attempts`). */
  readonly deviceToken?: string
}

export interface SessionView {
  readonly id: string
  readonly createdAt: string
  /** When it was opened or last refreshed. */
  readonly lastUsedAt: string
  readonly expiresAt: string
  readonly userAgent: string | null
  readonly address: string | null
}

export interface Sessions {
  /** Opens a session. At the limit per user, it ends the least recently used one. */
  open(tx: Transaction, account: Account, client: ClientInfo): Promise<SignedIn>
  /**
   * Ends every session of the account and opens a new one for the caller, with the start time of the caller's session:
   * this is not a sign-in (`recent-sign-in`). Null if that session has ended. With a `sessionId` of null, the new
   * session starts now.
   */
  replaceAll(tx: Transaction, account: Account, sessionId: string | null, client: ClientInfo): Promise<SignedIn | null>
  /**
   * Rotates a refresh token. The previous token returns the newest one for another `refreshGraceMs`. Any older token
   * means that two parties use the chain, and ends the session. Rejects with 401 if there is nothing to refresh.
   */
  refresh(refreshToken: string, client: ClientInfo): Promise<SignedIn>
  /** The session of a refresh token, current or rotated. Rejects with 401 for an invalid token. */
  findByToken(refreshToken: string): Promise<{ readonly sessionId: string; readonly userId: string }>
  /** Ends a session of the user; false if the user has no session with this id. */
  end(tx: Transaction, userId: string, sessionId: string): Promise<boolean>
  /** Whether the session exists; locks it until the transaction ends. */
  lock(tx: Transaction, userId: string, sessionId: string): Promise<boolean>
  /** Ends every session of a user except the given ones. Without exceptions also revokes tokens without a session. */
  endAll(tx: Transaction, userId: string, options?: { readonly except?: readonly (string | null)[] }): Promise<void>
  /** Newest first; at most `sessionsPerUserMax`. */
  list(userId: string): Promise<SessionView[]>
  /** Deletes at most `limit` expired sessions, oldest first. Returns how many. */
  sweep(limit: number): Promise<number>
}

interface Row {
  readonly id: string
  readonly user_id: string
  readonly generation: number
  readonly refresh_hash: string
  readonly previous_hash: string | null
  readonly key_id: string
  readonly rotated_at: unknown
  readonly created_at: unknown
  readonly used_at: unknown
  readonly expires_at: unknown
  readonly user_agent: string | null
  readonly address: string | null
}

const userAgentOf = ({ userAgent }: ClientInfo): string | null =>
  userAgent?.slice(0, userAgentCharsMax).toWellFormed() ?? null

export function createSessions(deps: {
  database: Database
  accounts: Accounts
  tokens: Tokens
  keys: SigningKeys
  revocation: Revocation
  issueDeviceToken: Attempts['issueDeviceToken']
  /** Maximum sessions per user; a function because a reload may change it. */
  sessionsMax: () => number
  clock: Clock
}): Sessions {
  const { database, accounts, tokens, keys, revocation, issueDeviceToken, sessionsMax, clock } = deps
  const { dialect } = database
  const sessions = usersTable(dialect, 'sessions')
  const newId = createUuid7(clock)

  const signedIn = (account: Account, sessionId: string, refreshToken: string): SignedIn => ({
    user: userView(account),
    accessToken: tokens.signAccess({
      id: account.id,
      email: account.email,
      emailVerified: account.emailVerifiedAtMs !== null,
      displayName: account.displayName,
      role: account.role,
      isAnonymous: account.isAnonymous,
      custom: account.customClaims,
      sessionId,
    }),
    refreshToken,
  })

  /** The newest token once more, or null when its key is gone. */
  function remake(row: Row): string | null {
    const key = keys.find(row.key_id)
    const { id: sessionId, user_id: userId, generation } = row
    const issuedAtMs = msOf(row.rotated_at)
    const token = key && tokens.signRefresh({ userId, sessionId, generation, issuedAtMs, key })
    return token !== null && sha256(token) === row.refresh_hash ? token : null
  }

  async function rotate(tx: Transaction, row: Row, client: ClientInfo): Promise<string> {
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

  /** Null for a rejected token. The caller must commit either way: detected reuse has ended the session. */
  async function refreshIn(
    tx: Transaction,
    session: { sessionId: string; userId: string },
    hash: string,
    client: ClientInfo,
  ): Promise<SignedIn | null> {
    const [row] = await tx.all<Row>(
      sql`SELECT * FROM ${sessions} WHERE id = ${session.sessionId} AND user_id = ${session.userId}${dialect.forUpdate}`,
    )
    if (!row || msOf(row.expires_at) <= clock.now()) return null
    const isGraceReuse = row.previous_hash === hash && clock.now() - msOf(row.rotated_at) <= refreshGraceMs
    if (row.refresh_hash !== hash && !isGraceReuse) {
      await end(tx, row.user_id, row.id)
      return null
    }
    const account = await accounts.find(tx, row.user_id)
    if (!account || account.disabledAtMs !== null) return null
    const token = isGraceReuse ? remake(row) : await rotate(tx, row, client)
    return token === null ? null : signedIn(account, row.id, token)
  }

  async function end(tx: Transaction, userId: string, sessionId: string): Promise<boolean> {
    // Not every engine accepts arbitrary text as a parameter.
    if (!isStorableText(sessionId)) return false
    const ended = await tx.run(sql`DELETE FROM ${sessions} WHERE id = ${sessionId} AND user_id = ${userId}`)
    if (ended > 0) revocation.revoke(tx, { userId, sessionId })
    return ended > 0
  }

  async function endOldest(tx: Transaction, userId: string): Promise<void> {
    const surplus = await tx.all<{ id: string }>(sql`SELECT id FROM ${sessions} WHERE user_id = ${userId}
      ORDER BY used_at DESC, id DESC LIMIT ${sessionsPerUserMax} OFFSET ${sessionsMax() - 1}`)
    for (const { id } of surplus) await end(tx, userId, id)
  }

  async function endAll(tx: Transaction, userId: string): Promise<void> {
    await tx.run(sql`DELETE FROM ${sessions} WHERE user_id = ${userId}`)
    revocation.revoke(tx, { userId, sessionId: null })
  }

  async function begin(tx: Transaction, account: Account, client: ClientInfo, sinceMs: number): Promise<SignedIn> {
    const sessionId = newId()
    const issuedAtMs = clock.now()
    const content = { userId: account.id, sessionId, generation: 0, issuedAtMs, key: keys.current() }
    const token = tokens.signRefresh(content)
    await tx.run(sql`INSERT INTO ${sessions} (id, user_id, generation, refresh_hash, previous_hash, key_id,
      rotated_at, created_at, used_at, expires_at, user_agent, address)
      VALUES (${sessionId}, ${account.id}, 0, ${sha256(token)}, NULL, ${content.key.id}, ${issuedAtMs}, ${sinceMs},
      ${issuedAtMs}, ${issuedAtMs + refreshTokenLifetimeMs},
      ${userAgentOf(client)}, ${client.address})`)
    const deviceToken = issueDeviceToken(account)
    return { ...signedIn(account, sessionId, token), ...(deviceToken === null ? {} : { deviceToken }) }
  }

  /** Start time of a session, locked until the transaction ends; null if it has ended. */
  async function findStart(tx: Transaction, userId: string, sessionId: string): Promise<number | null> {
    const [row] = await tx.all<Pick<Row, 'created_at'>>(
      sql`SELECT created_at FROM ${sessions} WHERE id = ${sessionId} AND user_id = ${userId}${dialect.forUpdate}`,
    )
    return row ? msOf(row.created_at) : null
  }

  return {
    async open(tx, account, client) {
      await endOldest(tx, account.id)
      return begin(tx, account, client, clock.now())
    },
    async replaceAll(tx, account, sessionId, client) {
      const sinceMs = sessionId === null ? clock.now() : await findStart(tx, account.id, sessionId)
      if (sinceMs === null) return null
      await endAll(tx, account.id)
      return begin(tx, account, client, sinceMs)
    },
    async refresh(refreshToken, client) {
      const session = await tokens.verifyRefresh(refreshToken)
      const hash = sha256(refreshToken)
      const result = await database.write((tx) => refreshIn(tx, session, hash, client))
      if (!result) throw invalidToken()
      return result
    },
    findByToken: (refreshToken) => tokens.verifyRefresh(refreshToken),
    end,
    lock: async (tx, userId, sessionId) => (await findStart(tx, userId, sessionId)) !== null,
    async endAll(tx, userId, { except = [] } = {}) {
      if (except.every((id) => id === null)) return endAll(tx, userId)
      const all = await tx.all<{ id: string }>(
        sql`SELECT id FROM ${sessions} WHERE user_id = ${userId}${dialect.forUpdate}`,
      )
      for (const { id } of all) if (!except.includes(id)) await end(tx, userId, id)
    },
    async list(userId) {
      const rows = await database.all<Row>(sql`SELECT * FROM ${sessions}
        WHERE user_id = ${userId} AND expires_at > ${clock.now()} ORDER BY id DESC LIMIT ${sessionsPerUserMax}`)
      return rows.map((row) => ({
        id: row.id,
        createdAt: formatDatetime(msOf(row.created_at)),
        lastUsedAt: formatDatetime(msOf(row.used_at)),
        expiresAt: formatDatetime(msOf(row.expires_at)),
        userAgent: row.user_agent,
        address: row.address,
      }))
    },
    sweep: (limit) =>
      database.write((tx) =>
        tx.run(sql`DELETE FROM ${sessions} WHERE id IN (SELECT id FROM ${sessions}
          WHERE expires_at <= ${clock.now()} ORDER BY expires_at LIMIT ${limit})`),
      ),
  }
}
