/**
 * Entries in SQL: one row per key and one statement per operation. A deleted key keeps its row, without a value, for
 * the namespace's write interval.
 */
import type { Clock } from '../../base/clock.ts'
import { findPrefixEnd } from '../../base/text/text.ts'
import type { KvNamespace } from '../../config/sections/kv/kv.ts'
import { writeEffect } from '../../engines/sql/effects.ts'
import { type PlatformStep, platformTable, preparePlatformTables } from '../../engines/sql/platform-tables.ts'
import type { Reader, Sql, Transaction } from '../../engines/sql/sql.ts'
import { ident, join, type SqlText, sql } from '../../engines/sql/sql-text.ts'
import { createResponsesTable } from '../../engines/sql/stored-responses.ts'
import { rateLimited } from '../../errors.ts'
import { kvSweepRowsMax } from '../../limits/resources.ts'

/** Declared namespaces cannot start with an underscore. */
export const kvNamespace = '_kv'
const table = platformTable(kvNamespace, 'entries')

/** Times are milliseconds since 1970. The value is the last column: columns behind a large one are slow to read. */
const steps: readonly PlatformStep[] = [
  ({ target, columnTypes }) => {
    const text: SqlText = { text: columnTypes.text, values: [] }
    return [
      sql`CREATE TABLE ${target(table)} (namespace ${text} NOT NULL, key ${text} NOT NULL, written_at BIGINT NOT NULL,
        expires_at BIGINT, value TEXT, PRIMARY KEY (namespace, key))`,
      sql`CREATE INDEX entries_expiry ON ${target(table)} (expires_at) WHERE expires_at IS NOT NULL`,
    ]
  },
  (dialect) => createResponsesTable(kvNamespace, dialect),
]

/** A key to write. */
export interface WrittenKey {
  readonly namespace: Pick<KvNamespace, 'name' | 'writeIntervalMs'>
  readonly key: string
  /** Of a job: a write with the key of an earlier one changes nothing. */
  readonly effectKey: string | undefined
  /** See `WriteOptions`. */
  readonly caller: string
}

export interface KeyRange {
  readonly prefix: string
  /** Return keys after this one; null for all. */
  readonly after: string | null
  readonly limit: number
}

/** An entry without its value; times are milliseconds since 1970. */
export interface ListedEntry {
  readonly key: string
  readonly valueBytes: number
  readonly writtenAtMs: number
  readonly expiresAtMs: number | null
}

export interface Entries {
  /** Creates the tables or migrates them to the current version. */
  prepare(): Promise<void>
  /** The value as JSON; null if absent. */
  find(namespace: string, key: string): Promise<string | null>
  /** `value` is JSON. Throws 429, without a change, within the namespace's interval after another write. */
  put(written: WrittenKey, value: string, ttlSeconds: number | null): Promise<void>
  /** Throws as `put`. Removing an absent key counts as a write as well. */
  remove(written: WrittenKey): Promise<void>
  /** In order of code points. */
  list(namespace: string, range: KeyRange): Promise<{ keys: readonly string[]; hasMore: boolean }>
  /** As `list`, with what an administrator sees of each entry. */
  browse(namespace: string, range: KeyRange): Promise<{ entries: readonly ListedEntry[]; hasMore: boolean }>
  /** Null if absent. */
  findEntry(namespace: string, key: string): Promise<(ListedEntry & { readonly value: string }) | null>
  /** Removes expired rows. */
  sweep(): Promise<void>
}

interface EntryRow {
  readonly key: string
  readonly bytes: unknown
  readonly written_at: unknown
  readonly expires_at: unknown
}

const listedOf = ({ key, bytes, written_at, expires_at }: EntryRow): ListedEntry => ({
  key,
  valueBytes: Number(bytes),
  writtenAtMs: Number(written_at),
  expiresAtMs: expires_at === null ? null : Number(expires_at),
})

export function createEntries(engine: Sql, clock: Clock): Entries {
  const database = engine.database({ namespace: kvNamespace, instanceId: null })
  const { dialect } = database
  const entries = dialect.target(table)
  const stored = ident('stored')

  const at = (namespace: string, key: string): SqlText => sql`namespace = ${namespace} AND key = ${key}`
  const isThere = (): SqlText => sql`value IS NOT NULL AND (expires_at IS NULL OR expires_at > ${clock.now()})`

  /** Both engines know the length without reading the value. */
  const shown = sql`key, octet_length(value) AS bytes, written_at, expires_at`

  /** The entries of a range that are there, one more than its limit. */
  function inRange(namespace: string, { prefix, after, limit }: KeyRange): SqlText {
    const conditions = [sql`namespace = ${namespace}`, isThere()]
    const end = findPrefixEnd(prefix)
    if (after !== null) conditions.push(sql`key > ${after}`)
    else if (prefix !== '') conditions.push(sql`key >= ${prefix}`)
    if (end !== null) conditions.push(sql`key < ${end}`)
    return sql`WHERE ${join(conditions, ' AND ')} ORDER BY key LIMIT ${limit + 1}`
  }

  const write = async ({ effectKey, caller }: WrittenKey, work: (tx: Transaction) => Promise<void>): Promise<void> => {
    const once = { effectKey, caller, nowMs: clock.now() }
    await writeEffect({ database, namespace: kvNamespace }, once, async (tx) => {
      await work(tx)
      return ''
    })
  }

  /**
   * The writing statement checks the interval on the current row, so only one of several concurrent writes succeeds. A
   * last write that is at least an interval in the future came from a clock that was set back, and blocks nothing.
   */
  async function store(
    tx: Transaction,
    { namespace: { name, writeIntervalMs }, key }: WrittenKey,
    value: string | null,
    lifetimeMs: number | null,
  ): Promise<void> {
    const nowMs = clock.now()
    const expiresAtMs = lifetimeMs === null ? null : nowMs + lifetimeMs
    const written = await tx.run(sql`INSERT INTO ${entries} AS ${stored} (namespace, key, written_at, expires_at, value)
      VALUES (${name}, ${key}, ${nowMs}, ${expiresAtMs}, ${value})
      ON CONFLICT (namespace, key) DO UPDATE
        SET written_at = excluded.written_at, expires_at = excluded.expires_at, value = excluded.value
        WHERE abs(excluded.written_at - ${stored}.written_at) >= ${writeIntervalMs}`)
    if (written === 0) throw rateLimited((await findWaitMs(tx, name, key, writeIntervalMs)) / 1000)
  }

  async function findWaitMs(on: Reader, namespace: string, key: string, intervalMs: number): Promise<number> {
    const [row] = await on.all<{ written_at: unknown }>(
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

    put: (written, value, ttlSeconds) =>
      write(written, (tx) => store(tx, written, value, ttlSeconds === null ? null : ttlSeconds * 1000)),

    remove: (written) =>
      write(written, async (tx) => {
        const { namespace, key } = written
        // Without an interval the time of the last write need not be kept.
        if (namespace.writeIntervalMs > 0) return store(tx, written, null, namespace.writeIntervalMs)
        await tx.run(sql`DELETE FROM ${entries} WHERE ${at(namespace.name, key)}`)
      }),

    async list(namespace, range) {
      const { limit } = range
      const rows = await database.all<{ key: string }>(sql`SELECT key FROM ${entries} ${inRange(namespace, range)}`)
      return { keys: rows.slice(0, limit).map(({ key }) => key), hasMore: rows.length > limit }
    },

    async browse(namespace, range) {
      const { limit } = range
      const rows = await database.all<EntryRow>(sql`SELECT ${shown} FROM ${entries} ${inRange(namespace, range)}`)
      return { entries: rows.slice(0, limit).map(listedOf), hasMore: rows.length > limit }
    },

    async findEntry(namespace, key) {
      const [row] = await database.all<EntryRow & { value: string }>(
        sql`SELECT ${shown}, value FROM ${entries} WHERE ${at(namespace, key)} AND ${isThere()}`,
      )
      return row ? { ...listedOf(row), value: row.value } : null
    },

    async sweep() {
      for (;;) {
        const nowMs = clock.now()
        const removed = await database.write(async (tx) => {
          // Prevents deadlocks between nodes that sweep at once.
          await tx.lock('kv sweep')
          // The condition is repeated: a key may be written between being selected and being deleted.
          return tx.run(sql`DELETE FROM ${entries} WHERE expires_at <= ${nowMs} AND (namespace, key) IN
            (SELECT namespace, key FROM ${entries} WHERE expires_at <= ${nowMs} ORDER BY expires_at
              LIMIT ${kvSweepRowsMax})`)
        })
        if (removed < kvSweepRowsMax) return
      }
    },
  }
}
