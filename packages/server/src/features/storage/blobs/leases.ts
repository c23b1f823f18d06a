/**
 * Leases of backups: while one is active, blobs released after its start are not removed. Leases are rows in the
 * database, so that they apply on every node; each expires `backupLeaseMs` after its last renewal.
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../../../base/clock.ts'
import { isStorableText } from '../../../base/text/text.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { backupLeaseMs, backupLeasesMax } from '../../../limits/jobs.ts'
import type { Store } from '../migrations.ts'

export interface Lease {
  readonly id: string
  /** Milliseconds since 1970; the lease must be renewed before. */
  readonly expiresMs: number
}

export interface Leases {
  /** Null if too many leases are active. */
  take(): Promise<Lease | null>
  /** Null if the lease has expired: files may have been removed since. */
  renew(id: string): Promise<Lease | null>
  /** False if the lease had expired: files may have been removed since. */
  end(id: string): Promise<boolean>
}

export function createLeases({ database, tables }: Store, clock: Clock): Leases {
  return {
    take: () =>
      database.write(async (tx) => {
        await tx.lock('storage leases')
        const nowMs = clock.now()
        const [row] = await tx.all<{ active: number }>(
          sql`SELECT count(*) AS active FROM ${tables.leases} WHERE expires > ${nowMs}`,
        )
        if (Number(row?.active) >= backupLeasesMax) return null
        const lease = { id: randomUUID(), expiresMs: nowMs + backupLeaseMs }
        await tx.run(sql`INSERT INTO ${tables.leases} (id, since, expires)
          VALUES (${lease.id}, ${nowMs}, ${lease.expiresMs})`)
        return lease
      }),

    async renew(id) {
      // Not every engine accepts arbitrary text as a parameter.
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
