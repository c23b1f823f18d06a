/**
 * Sessions of administrators. The browser has a random token in a cookie, of which only the hash is stored; a session
 * ends after twelve hours, after an hour without a request, and in the transaction that ends the sessions of its user.
 */
import { randomBytes } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { sha256 } from '../../base/crypto/hash.ts'
import { createUuid7 } from '../../base/crypto/ids.ts'
import type { Sql, Transaction } from '../../engines/sql/sql.ts'
import { sql } from '../../engines/sql/sql-text.ts'
import {
  dashboardIdleMs,
  dashboardSessionMs,
  dashboardSessionsPerUserMax,
  dashboardSessionsSweptMax,
  dashboardTokenBytes,
  dashboardTouchMs,
} from '../../limits/dashboard.ts'
import { userAgentCharsMax } from '../../limits/users.ts'
import { dashboardAddress, dashboardTable, prepareDashboardTables } from './migrations.ts'

export interface DashboardSession {
  readonly id: string
  readonly userId: string
  readonly createdAtMs: number
  /** When it ends at the latest. */
  readonly expiresAtMs: number
}

/** A new session with the only copy of its token. */
export interface OpenedSession extends DashboardSession {
  readonly token: string
}

interface SessionClient {
  readonly address: string
  readonly userAgent: string | null
}

export interface DashboardSessions {
  /** Opens a session. At the limit per user it ends the least recently used one. */
  open(tx: Transaction, userId: string, client: SessionClient): Promise<OpenedSession>
  /** The session of a token, and records its use; null if there is none, or it has ended. */
  find(token: string): Promise<DashboardSession | null>
  /** The same without recording a use. */
  check(token: string): Promise<DashboardSession | null>
  /** Ends the session of a token, if there is one. */
  end(token: string): Promise<void>
  /** Ends every session of a user when the transaction commits. */
  endAll(tx: Transaction, userId: string): void
  /** Deletes sessions that have ended, in bounded batches. */
  sweep(signal: AbortSignal): Promise<void>
}

interface Row {
  readonly id: string
  readonly user_id: string
  readonly created_at: unknown
  readonly used_at: unknown
}

export interface DashboardSessionsDeps {
  readonly sql: Sql
  readonly clock: Clock
}

/** Creates the tables if they are missing. */
export async function openDashboardSessions({ sql: engine, clock }: DashboardSessionsDeps): Promise<DashboardSessions> {
  const database = engine.database(dashboardAddress)
  await prepareDashboardTables(database)
  const sessions = dashboardTable(database.dialect, 'sessions')
  const newId = createUuid7(clock)

  const sessionOf = (id: string, userId: string, createdAtMs: number): DashboardSession => ({
    id,
    userId,
    createdAtMs,
    expiresAtMs: createdAtMs + dashboardSessionMs,
  })

  const read = async (token: string): Promise<Row | undefined> => {
    const nowMs = clock.now()
    const [row] = await database.all<Row>(sql`SELECT id, user_id, created_at, used_at FROM ${sessions}
      WHERE token_hash = ${sha256(token)} AND created_at > ${nowMs - dashboardSessionMs}
      AND used_at > ${nowMs - dashboardIdleMs}`)
    return row
  }

  return {
    async open(tx, userId, { address, userAgent }) {
      await tx.run(sql`DELETE FROM ${sessions} WHERE id IN (SELECT id FROM ${sessions} WHERE user_id = ${userId}
        ORDER BY used_at DESC, id DESC LIMIT ${dashboardSessionsPerUserMax} OFFSET ${dashboardSessionsPerUserMax - 1})`)
      const token = randomBytes(dashboardTokenBytes).toString('base64url')
      const [id, nowMs] = [newId(), clock.now()]
      await tx.run(sql`INSERT INTO ${sessions} (id, token_hash, user_id, created_at, used_at, address, user_agent)
        VALUES (${id}, ${sha256(token)}, ${userId}, ${nowMs}, ${nowMs}, ${address},
          ${userAgent?.slice(0, userAgentCharsMax).toWellFormed() ?? null})`)
      return { ...sessionOf(id, userId, nowMs), token }
    },

    async find(token) {
      const row = await read(token)
      if (!row) return null
      const nowMs = clock.now()
      if (nowMs - Number(row.used_at) >= dashboardTouchMs)
        await database.write((tx) => tx.run(sql`UPDATE ${sessions} SET used_at = ${nowMs} WHERE id = ${row.id}`))
      return sessionOf(row.id, row.user_id, Number(row.created_at))
    },

    async check(token) {
      const row = await read(token)
      return row ? sessionOf(row.id, row.user_id, Number(row.created_at)) : null
    },

    async end(token) {
      await database.write((tx) => tx.run(sql`DELETE FROM ${sessions} WHERE token_hash = ${sha256(token)}`))
    },

    endAll: (tx, userId) => tx.send(sql`DELETE FROM ${sessions} WHERE user_id = ${userId}`),

    async sweep(signal) {
      const sweepOnce = (): Promise<number> =>
        database.write((tx) =>
          tx.run(sql`DELETE FROM ${sessions} WHERE id IN (SELECT id FROM ${sessions}
            WHERE created_at <= ${clock.now() - dashboardSessionMs} ORDER BY created_at LIMIT ${dashboardSessionsSweptMax})`),
        )
      while (!signal.aborted && (await sweepOnce()) === dashboardSessionsSweptMax);
    },
  }
}
