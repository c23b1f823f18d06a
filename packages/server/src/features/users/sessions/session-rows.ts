/** Rows of sessions: their ends, their list and their expiry. `sessions` opens them and `rotation` keeps them alive. */
import type { Clock } from '../../../base/clock.ts'
import { formatDatetime } from '../../../base/text/datetime.ts'
import { isStorableText } from '../../../base/text/text.ts'
import type { Database, Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { sessionsPerUserMax, userAgentCharsMax } from '../../../limits/users.ts'
import type { ClientInfo } from '../accounts/client-info.ts'
import { msOf, usersTable } from '../migrations.ts'
import type { Revocation } from './revocation.ts'

export interface SessionView {
  readonly id: string
  readonly createdAt: string
  /** When it was opened or last refreshed. */
  readonly lastUsedAt: string
  readonly expiresAt: string
  readonly userAgent: string | null
  readonly address: string | null
}

interface EndAllOptions {
  readonly except?: readonly (string | null)[]
}

export interface SessionRows {
  /** Start time of a session, locked until the transaction ends; null if it has ended. */
  findStart(tx: Transaction, userId: string, sessionId: string): Promise<number | null>
  /** Ends the least recently used sessions of a user at the limit, so that there is room for another. */
  endSurplus(tx: Transaction, userId: string): Promise<void>
  /** Ends a session of the user; false if the user has no session with this id. */
  end(tx: Transaction, userId: string, sessionId: string): Promise<boolean>
  /** Ends every session of a user except the given ones. Without exceptions also revokes tokens without a session. */
  endAll(tx: Transaction, userId: string, options?: EndAllOptions): Promise<void>
  /** Newest first; at most `sessionsPerUserMax`. */
  list(userId: string): Promise<SessionView[]>
  /** Deletes at most `limit` expired sessions, oldest first. Returns how many. */
  sweep(limit: number): Promise<number>
}

export interface SessionRow {
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

export const userAgentOf = ({ userAgent }: ClientInfo): string | null =>
  userAgent?.slice(0, userAgentCharsMax).toWellFormed() ?? null

export interface SessionRowsDeps {
  readonly database: Database
  readonly revocation: Revocation
  /** Maximum sessions per user; a function because a reload may change it. */
  readonly sessionsMax: () => number
  readonly clock: Clock
}

export function createSessionRows({ database, revocation, sessionsMax, clock }: SessionRowsDeps): SessionRows {
  const { dialect } = database
  const sessions = usersTable(dialect, 'sessions')

  async function end(tx: Transaction, userId: string, sessionId: string): Promise<boolean> {
    // Not every engine accepts arbitrary text as a parameter.
    if (!isStorableText(sessionId)) return false
    const ended = await tx.run(sql`DELETE FROM ${sessions} WHERE id = ${sessionId} AND user_id = ${userId}`)
    if (ended > 0) revocation.revoke(tx, { userId, sessionId })
    return ended > 0
  }

  return {
    async findStart(tx, userId, sessionId) {
      const [row] = await tx.all<Pick<SessionRow, 'created_at'>>(
        sql`SELECT created_at FROM ${sessions} WHERE id = ${sessionId} AND user_id = ${userId}${dialect.forUpdate}`,
      )
      return row ? msOf(row.created_at) : null
    },
    async endSurplus(tx, userId) {
      const surplus = await tx.all<{ id: string }>(sql`SELECT id FROM ${sessions} WHERE user_id = ${userId}
        ORDER BY used_at DESC, id DESC LIMIT ${sessionsPerUserMax} OFFSET ${sessionsMax() - 1}`)
      for (const { id } of surplus) await end(tx, userId, id)
    },
    end,
    async endAll(tx, userId, { except = [] } = {}) {
      if (except.every((id) => id === null)) {
        await tx.run(sql`DELETE FROM ${sessions} WHERE user_id = ${userId}`)
        revocation.revoke(tx, { userId, sessionId: null })
        return
      }
      const all = await tx.all<{ id: string }>(
        sql`SELECT id FROM ${sessions} WHERE user_id = ${userId}${dialect.forUpdate}`,
      )
      for (const { id } of all) if (!except.includes(id)) await end(tx, userId, id)
    },
    async list(userId) {
      const rows = await database.all<SessionRow>(sql`SELECT * FROM ${sessions}
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
