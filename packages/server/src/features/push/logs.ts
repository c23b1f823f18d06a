/** Log of sent messages, kept for a day. */
import type { Clock } from '../../base/clock.ts'
import { createUuid7 } from '../../base/crypto/ids.ts'
import { formatDatetime } from '../../base/text/datetime.ts'
import type { Transaction } from '../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../engines/sql/sql-text.ts'
import { pushLogRetentionMs, pushLogsTrimmedMax } from '../../limits/push.ts'
import { clockSkewMs } from '../../limits/sqlite.ts'
import type { Payload } from './message.ts'
import type { PushTables } from './migrations.ts'
import type { Outcome } from './providers/provider.ts'

export interface LogEntry {
  readonly id: string
  readonly userId: string
  readonly status: Outcome['status']
  readonly platform: string
  readonly title: string
  readonly body: string
  readonly timestamp: string
  readonly error: string | null
}

/** The recipient of a message; the user id of an unregistered token is empty. */
export interface Addressee {
  readonly userId: string
  readonly platform: string
}

export interface Logs {
  add(tx: Transaction, to: Addressee, payload: Payload, outcome: Outcome): void
  /** Newest first, within the retention, after an entry by id; of one user, or of all for null. */
  list(userId: string | null, page: { readonly limit: number; readonly after: string | null }): Promise<LogEntry[]>
  /** Removes entries beyond the retention. */
  trim(): Promise<void>
}

interface Row extends Omit<LogEntry, 'userId' | 'timestamp'> {
  readonly user_id: string
  readonly created_at: unknown
}

export function createLogs({ database, logs }: PushTables, clock: Clock): Logs {
  const newId = createUuid7(clock)

  /** Runs a statement on the selected rows in bounded batches. */
  async function changeSome(statement: SqlText, condition: SqlText): Promise<void> {
    for (let changed = pushLogsTrimmedMax; changed === pushLogsTrimmedMax; )
      changed = await database.write((tx) =>
        tx.run(sql`${statement} WHERE id IN (
          SELECT id FROM ${logs} WHERE ${condition} ORDER BY created_at LIMIT ${pushLogsTrimmedMax})`),
      )
  }

  return {
    add(tx, { userId, platform }, { title, body }, { status, error }) {
      tx.send(sql`INSERT INTO ${logs} (id, user_id, status, platform, title, body, created_at, error)
        VALUES (${newId()}, ${userId}, ${status}, ${platform}, ${title}, ${body}, ${clock.now()}, ${error})`)
    },
    async list(userId, { limit, after }) {
      const behind = after === null ? sql`` : sql` AND id < ${after}`
      const ofUser = userId === null ? sql`` : sql` AND user_id = ${userId}`
      const rows = await database.all<Row>(sql`SELECT * FROM ${logs}
        WHERE created_at > ${clock.now() - pushLogRetentionMs}${ofUser}${behind} ORDER BY id DESC LIMIT ${limit}`)
      return rows.map(({ id, user_id, status, platform, title, body, created_at, error }) => ({
        id,
        userId: user_id,
        status,
        platform,
        title,
        body,
        timestamp: formatDatetime(Number(created_at)),
        error,
      }))
    },
    async trim() {
      const nowMs = clock.now()
      const before = nowMs - pushLogRetentionMs
      // Entries written by a clock running ahead get the current time; otherwise they would stay until that time is
      // reached.
      await changeSome(sql`UPDATE ${logs} SET created_at = ${nowMs}`, sql`created_at > ${nowMs + clockSkewMs}`)
      await changeSome(sql`DELETE FROM ${logs}`, sql`created_at <= ${before}`)
    },
  }
}
