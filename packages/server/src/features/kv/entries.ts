/**
 * Entries in SQL: one row for each key, and one statement for each operation. A deleted key keeps its row, without a
 * value, for as long as the last write of it matters. What may be asked, and of which namespace, is `index`'s.
 */
import type { Clock } from '../../base/clock.ts'
import { findPrefixEnd } from '../../base/text/text.ts'
import type { KvNamespace } from '../../config/sections/kv.ts'
import { type PlatformStep, platformTable, preparePlatformTables } from '../../engines/sql/platform-tables.ts'
import type { Sql } from '../../engines/sql/sql.ts'
import { ident, join, type SqlText, sql } from '../../engines/sql/sql-text.ts'
import { rateLimited } from '../../errors.ts'
import { kvSweepRowsMax } from '../../limits/resources.ts'

/** No declared namespace begins so. */
const kvNamespace = '_kv'
const table = platformTable(kvNamespace, 'entries')

/** Times are milliseconds since 1970. The value comes last: what follows a large one is slow to reach. */
const steps: readonly PlatformStep[] = [
  ({ target, columnTypes }) => {
    const text: SqlText = { text: columnTypes.text, values: [] }
    return [
      sql`CREATE TABLE ${target(table)} (namespace ${text} NOT NULL, key ${text} NOT NULL, written_at BIGINT NOT NULL,
        expires_at BIGINT, value TEXT, PRIMARY KEY (namespace, key))`,
      sql`CREATE INDEX entries_expiry ON ${target(table)} (expires_at) WHERE expires_at IS NOT NULL`,
    ]
  },
]

/** What is asked of a namespace here. */
type Written = Pick<KvNamespace, 'name' | 'writeIntervalMs'>

export interface KeyRange {
  readonly prefix: string
  /** The keys behind this one; null for all. */
  readonly after: string | null
  readonly limit: number
}

export interface Entries {
  /** Makes the tables, or brings them to the newest version. */
  prepare(): Promise<void>
  /** The value as JSON; null where there is none. */
  find(namespace: string, key: string): Promise<string | null>
  /** `value` is JSON. Throws 429 within the namespace's interval after another write, with nothing changed. */
  put(namespace: Written, key: string, value: string, ttlSeconds: number | null): Promise<void>
  /** Throws like `put`. Of a key that is not there it is a write as well. */
  remove(namespace: Written, key: string): Promise<void>
  /** In order of code points. */
  list(namespace: string, range: KeyRange): Promise<{ keys: readonly string[]; hasMore: boolean }>
  /** Removes rows that nobody can see any more. */
  sweep(): Promise<void>
}

export function createEntries(engine: Sql, clock: Clock): Entries {
  const database = engine.database({ namespace: kvNamespace, instanceId: null })
  const { dialect } = database
  const entries = dialect.target(table)
  const stored = ident('stored')

  const at = (namespace: string, key: string): SqlText => sql`namespace = ${namespace} AND key = ${key}`
  const isThere = (): SqlText => sql`value IS NOT NULL AND (expires_at IS NULL OR expires_at > ${clock.now()})`

  /**
   * The interval is judged by the statement that writes, on the row as it then is: of many writes at once one finds it
   * over. A last write that is as far in the future is none of this clock's: one that was set back stops nobody.
   */
  async function write(
    { name, writeIntervalMs }: Written,
    key: string,
    value: string | null,
    lifetimeMs: number | null,
  ): Promise<void> {
    const nowMs = clock.now()
    const expiresAtMs = lifetimeMs === null ? null : nowMs + lifetimeMs
    const upsert = sql`INSERT INTO ${entries} AS ${stored} (namespace, key, written_at, expires_at, value)
      VALUES (${name}, ${key}, ${nowMs}, ${expiresAtMs}, ${value})
      ON CONFLICT (namespace, key) DO UPDATE
        SET written_at = excluded.written_at, expires_at = excluded.expires_at, value = excluded.value
        WHERE abs(excluded.written_at - ${stored}.written_at) >= ${writeIntervalMs}`
    const written = await database.write((tx) => tx.run(upsert))
    if (written === 0) throw rateLimited((await findWaitMs(name, key, writeIntervalMs)) / 1000)
  }

  async function findWaitMs(namespace: string, key: string, intervalMs: number): Promise<number> {
    const [row] = await database.all<{ written_at: unknown }>(
      sql`SELECT written_at FROM ${entries} WHERE ${at(namespace, key)}`,
    )
    return row ? Number(row.written_at) + intervalMs - clock.now() : 0
  }

  return {
    prepare: () => preparePlatformTables(database, kvNamespace, 'kv', steps),

    async find(namespace, key) {
      const [row] = await database.all<{ value: string }>(
        sql`SELECT value FROM ${entries} WHERE ${at(namespace, key)} AND ${isThere()}`,
      )
      return row?.value ?? null
    },

    put: (namespace, key, value, ttlSeconds) =>
      write(namespace, key, value, ttlSeconds === null ? null : ttlSeconds * 1000),

    async remove(namespace, key) {
      // Where no write waits for the one before, there is nothing to remember of this one.
      if (namespace.writeIntervalMs > 0) return write(namespace, key, null, namespace.writeIntervalMs)
      await database.write((tx) => tx.run(sql`DELETE FROM ${entries} WHERE ${at(namespace.name, key)}`))
    },

    async list(namespace, { prefix, after, limit }) {
      const conditions = [sql`namespace = ${namespace}`, isThere()]
      const end = findPrefixEnd(prefix)
      if (after !== null) conditions.push(sql`key > ${after}`)
      else if (prefix !== '') conditions.push(sql`key >= ${prefix}`)
      if (end !== null) conditions.push(sql`key < ${end}`)
      const rows = await database.all<{ key: string }>(
        sql`SELECT key FROM ${entries} WHERE ${join(conditions, ' AND ')} ORDER BY key LIMIT ${limit + 1}`,
      )
      return { keys: rows.slice(0, limit).map(({ key }) => key), hasMore: rows.length > limit }
    },

    async sweep() {
      for (;;) {
        const nowMs = clock.now()
        const removed = await database.write(async (tx) => {
          // Two nodes that sweep at once could deadlock on each other's rows.
          await tx.lock('kv sweep')
          // Said twice: a key may be written anew between its being found and its being removed.
          return tx.run(sql`DELETE FROM ${entries} WHERE expires_at <= ${nowMs} AND (namespace, key) IN
            (SELECT namespace, key FROM ${entries} WHERE expires_at <= ${nowMs} ORDER BY expires_at
              LIMIT ${kvSweepRowsMax})`)
        })
        if (removed < kvSweepRowsMax) return
      }
    },
  }
}
