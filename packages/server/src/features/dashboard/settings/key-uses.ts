/**
 * When each service key was last used. Uses are noted in memory, since every request of a key is one, and written once
 * a minute; the newest of all nodes stays. Keys are declared in the configuration, so their number is bounded.
 */
import type { Clock } from '../../../base/clock.ts'
import type { Database } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { dashboardTable } from '../migrations.ts'

export interface KeyUses {
  /** A valid key of this name authenticated a request or a socket. */
  note(name: string): void
  /** Milliseconds since 1970 by name, without keys that were never used. */
  list(): Promise<ReadonlyMap<string, number>>
  /** Writes what was noted since the last call. What cannot be written is noted again. */
  write(): Promise<void>
}

interface Row {
  readonly name: string
  readonly used_at: unknown
}

export function createKeyUses({ database, clock }: { readonly database: Database; readonly clock: Clock }): KeyUses {
  const table = dashboardTable(database.dialect, 'key_uses')
  let noted = new Map<string, number>()
  return {
    note: (name) => void noted.set(name, clock.now()),

    async list() {
      const rows = await database.all<Row>(sql`SELECT name, used_at FROM ${table}`)
      const uses = new Map(rows.map(({ name, used_at }) => [name, Number(used_at)]))
      for (const [name, atMs] of noted) uses.set(name, Math.max(atMs, uses.get(name) ?? 0))
      return uses
    },

    async write() {
      if (noted.size === 0) return
      const written = noted
      noted = new Map()
      try {
        await database.write(async (tx) => {
          for (const [name, atMs] of written)
            await tx.all(sql`INSERT INTO ${table} AS uses (name, used_at) VALUES (${name}, ${atMs})
              ON CONFLICT (name) DO UPDATE SET used_at = excluded.used_at WHERE uses.used_at < excluded.used_at`)
        })
      } catch (error) {
        noted = new Map([...written, ...noted])
        throw error
      }
    },
  }
}
