/**
 * Leases of backups: while one lives, blobs that were released since it began are not removed. Rows in the database, so
 * that they hold on every node; each ends a minute after it was last renewed.
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../../../base/clock.ts'
import { isStorableText } from '../../../base/text/text.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { backupLeaseMs, backupLeasesMax } from '../../../limits/jobs.ts'
import type { Store } from '../schema.ts'

export interface Lease {
  readonly id: string
  /** Milliseconds since 1970; it must be renewed before. */
  readonly expiresMs: number
}

export interface Leases {
  /** Null where too many live already. */
  take(): Promise<Lease | null>
  /** Null where it has ended: files may have been removed since. */
  renew(id: string): Promise<Lease | null>
  /** False where it had ended before: files may have been removed since. */
  end(id: string): Promise<boolean>
}

export function createLeases({ database, tables }: Store, clock: Clock): Leases {
  return {
    take: () =>
      database.write(async (tx) => {
        await tx.lock('storage leases')
        const nowMs = clock.now()
        const [row] = await tx.all<{ living: number }>(
          sql`SELECT count(*) AS living FROM ${tables.leases} WHERE expires > ${nowMs}`,
        )
        if (Number(row?.living) >= backupLeasesMax) return null
        const lease = { id: randomUUID(), expiresMs: nowMs + backupLeaseMs }
        await tx.run(sql`INSERT INTO ${tables.leases} (id, since, expires)
          VALUES (${lease.id}, ${nowMs}, ${lease.expiresMs})`)
        return lease
      }),

    async renew(id) {
      // Not every engine can be asked for any text.
      if (!isStorableText(id)) return null
      const nowMs = clock.now()
      const expiresMs = nowMs + backupLeaseMs
      const renewed = await database.write((tx) =>
        tx.run(sql`UPDATE ${tables.leases} SET expires = ${expiresMs} WHERE id = ${id} AND expires > ${nowMs}`),
      )
      return renewed === 1 ? { id, expiresMs } : null
    },

    async end(id) {
      if (!isStorableText(id)) return false
      const ended = await database.write((tx) =>
        tx.run(sql`DELETE FROM ${tables.leases} WHERE id = ${id} AND expires > ${clock.now()}`),
      )
      return ended === 1
    },
  }
}
