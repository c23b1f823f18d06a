/**
 * Viewing as a user: a session of an administrator that shows data under the rules of a user. It never has a token:
 * the session keeps the id of the user and the claims that the application computed at the start, and each request
 * makes the caller from the current account. While it lasts, the session only reads (`sign-in`).
 */
import type { Administrator, UserCaller, ViewedUser } from '../../../access/caller.ts'
import type { Clock } from '../../../base/clock.ts'
import type { JsonObject } from '../../../base/text/json.ts'
import type { Database } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import type { Call } from '../../../http/endpoint.ts'
import { viewAsMs, viewsAsSweptMax } from '../../../limits/dashboard.ts'
import type { DashboardAudit } from '../audit/audit.ts'
import { dashboardTable } from '../migrations.ts'

/** What the users feature knows of a user who is viewed. */
export interface ViewedUsers {
  /**
   * The claims that the application computes for a token of the user now; null if it computes none. Rejects with 404
   * for an unknown user and 409 for a disabled one, and as the function of the application does.
   */
  computeClaims(userId: string, call: ViewCall): Promise<JsonObject | null>
  /** The caller that a token with these claims would make; `disabled` or null if it would be refused. */
  findCaller(userId: string, computedClaims: JsonObject | null): Promise<UserCaller | 'disabled' | null>
}

export type ViewCall = Pick<Call, 'address' | 'path' | 'requestId' | 'signal'>

export interface ViewAs {
  /** Rejects as `computeClaims` does. The session must not view as a user already. */
  start(admin: Administrator, userId: string, call: ViewCall): Promise<{ readonly endsAtMs: number }>
  /** The user whom a session views as; null for none. */
  find(sessionId: string): Promise<ViewedUser | null>
  /** Ends the view of a session on request; the id of its user, null if there was none. */
  end(sessionId: string): Promise<string | null>
  /** Ends the view of a session that signs out, and records it. */
  endWithSession(sessionId: string, call: ViewCall): Promise<void>
  /** Ends and records the views that are over: by time, or because their session is. */
  sweep(signal: AbortSignal): Promise<void>
}

interface Row {
  readonly session_id: string
  readonly user_id: string
  readonly admin_id: string
  readonly admin_email: string | null
  readonly address: string
  readonly started_at: unknown
  readonly claims: string | null
}

export interface ViewAsDeps {
  readonly database: Database
  readonly users: ViewedUsers
  readonly audit: Pick<DashboardAudit, 'recordEvent'>
  readonly clock: Clock
}

export function createViewAs({ database, users, audit, clock }: ViewAsDeps): ViewAs {
  const views = dashboardTable(database.dialect, 'view_as')
  const sessions = dashboardTable(database.dialect, 'sessions')

  const findRow = async (sessionId: string): Promise<Row | undefined> =>
    (await database.all<Row>(sql`SELECT * FROM ${views} WHERE session_id = ${sessionId}`))[0]

  const remove = (sessionId: string): Promise<boolean> =>
    database.write(async (tx) => (await tx.run(sql`DELETE FROM ${views} WHERE session_id = ${sessionId}`)) === 1)

  /** Ends a view that no request asked to end. */
  const endUnasked = (row: Row, reason: 'expired' | 'session-ended', requestId = ''): Promise<void> =>
    audit.recordEvent(
      {
        actor: { id: row.admin_id, email: row.admin_email },
        action: 'dashboard.endViewAs',
        target: '/dashboard/api/view-as',
        address: row.address,
        requestId,
        before: { userId: row.user_id },
        after: { reason },
      },
      () => remove(row.session_id),
    )

  const endsAtMsOf = ({ started_at }: Row): number => Number(started_at) + viewAsMs

  return {
    async start({ sessionId, userId: adminId, email }, userId, call) {
      const claims = await users.computeClaims(userId, call)
      const nowMs = clock.now()
      await database.write((tx) =>
        tx.run(sql`INSERT INTO ${views} (session_id, user_id, admin_id, admin_email, address, started_at, claims)
          VALUES (${sessionId}, ${userId}, ${adminId}, ${email}, ${call.address}, ${nowMs},
            ${claims === null ? null : JSON.stringify(claims)})`),
      )
      return { endsAtMs: nowMs + viewAsMs }
    },

    async find(sessionId) {
      const row = await findRow(sessionId)
      if (!row) return null
      const endsAtMs = endsAtMsOf(row)
      if (clock.now() >= endsAtMs) {
        await endUnasked(row, 'expired')
        return null
      }
      const found = await users.findCaller(row.user_id, row.claims === null ? null : JSON.parse(row.claims))
      const caller = found === null || found === 'disabled' ? null : Object.freeze({ ...found, expiresAtMs: endsAtMs })
      return Object.freeze({ userId: row.user_id, caller, endsAtMs })
    },

    async end(sessionId) {
      const row = await findRow(sessionId)
      return row && (await remove(sessionId)) ? row.user_id : null
    },

    async endWithSession(sessionId, { requestId }) {
      const row = await findRow(sessionId)
      if (row) await endUnasked(row, 'session-ended', requestId)
    },

    async sweep(signal) {
      for (;;) {
        const over = await database.all<Row>(sql`SELECT * FROM ${views} WHERE started_at <= ${clock.now() - viewAsMs}
          OR NOT EXISTS (SELECT 1 FROM ${sessions} WHERE id = session_id) LIMIT ${viewsAsSweptMax}`)
        for (const row of over) {
          if (signal.aborted) return
          await endUnasked(row, clock.now() >= endsAtMsOf(row) ? 'expired' : 'session-ended')
        }
        if (over.length < viewsAsSweptMax) return
      }
    },
  }
}
