/**
 * Direct access to the analytics database on either engine: to seed it in bulk, and to observe the server's progress.
 */
import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { Client } from 'pg'
import { analyticsNamespace } from '../../packages/server/src/features/analytics/migrations.ts'
import { folderBytes } from '../setup/folders.ts'

export type Row = readonly (string | number | null)[]

export interface AnalyticsStore {
  /** SQL for the day, like `2026-01-31`, that a column `minute` is in. */
  readonly day: string
  run(statement: string): Promise<void>
  /** Rows with all columns of the table, in their order. */
  insert(table: string, rows: readonly Row[]): Promise<void>
  /** Drops all indexes but that of the primary key; returns the statements that create them. */
  dropIndexes(table: string): Promise<string[]>
  /** Null for an empty table. */
  oldestEvent(): Promise<string | null>
  /** Writes everything to disk and updates the engine's statistics. */
  flush(): Promise<void>
  diskBytes(): Promise<number>
  close(): Promise<void>
}

const oldestEvent = 'SELECT id FROM _events ORDER BY id LIMIT 1'

/** The file of a data folder: written before the server starts, only read afterwards. */
export function openSqliteStore(folder: string, { readonly }: { readonly: boolean }): AnalyticsStore {
  const db = new Database(join(folder, 'databases', `${analyticsNamespace}.sqlite`), { readonly, readwrite: !readonly })
  if (!readonly)
    // Nothing here needs to survive a crash.
    for (const setting of ['journal_mode = OFF', 'synchronous = OFF', 'cache_size = -1000000', 'temp_store = MEMORY'])
      db.run(`PRAGMA ${setting}`)
  return {
    day: `strftime('%Y-%m-%d', minute * 60, 'unixepoch')`,
    run: async (statement) => void db.run(statement),
    async insert(table, rows) {
      const insert = db.prepare(`INSERT INTO ${table} VALUES (${rows[0]?.map(() => '?').join()})`)
      db.transaction(() => {
        for (const row of rows) insert.run(...row)
      })()
      insert.finalize()
    },
    async dropIndexes(table) {
      const query = db.query(`SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql > ''`)
      const indexes = query.all(table) as { name: string; sql: string }[]
      query.finalize()
      for (const { name } of indexes) db.run(`DROP INDEX ${name}`)
      return indexes.map(({ sql }) => sql)
    },
    async oldestEvent() {
      const row = db.query(oldestEvent).get() as { id: string } | null
      return row?.id ?? null
    },
    async flush() {},
    diskBytes: async () => folderBytes(folder),
    close: async () => db.close(),
  }
}

/** Opens a database that contains only analytics. */
export async function openPostgresStore(url: string): Promise<AnalyticsStore> {
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query(`SET search_path = "${analyticsNamespace}"`)
  // Seeded rows need not survive a crash; the memory is for building indexes.
  await client.query(`SET synchronous_commit = off; SET work_mem = '1GB'; SET maintenance_work_mem = '1GB'`)
  return {
    day: `to_char(to_timestamp(minute * 60) AT TIME ZONE 'UTC', 'YYYY-MM-DD')`,
    run: async (statement) => void (await client.query(statement)),
    async insert(table, rows) {
      const columns = (rows[0] ?? []).map((_, at) => rows.map((row) => row[at] ?? null))
      const casts = columns.map((column, at) => {
        const isText = column.some((value) => typeof value === 'string')
        return `$${at + 1}::${isText ? 'text' : 'bigint'}[]`
      })
      await client.query(`INSERT INTO ${table} SELECT * FROM unnest(${casts.join()})`, columns)
    },
    async dropIndexes(table) {
      const { rows } = await client.query<{ name: string; sql: string }>(
        `SELECT indexname AS name, indexdef AS sql FROM pg_indexes
          WHERE schemaname = $1 AND tablename = $2 AND indexname NOT LIKE '%_pkey'`,
        [analyticsNamespace, table],
      )
      for (const { name } of rows) await client.query(`DROP INDEX "${name}"`)
      return rows.map(({ sql }) => sql)
    },
    async oldestEvent() {
      const { rows } = await client.query<{ id: string }>(oldestEvent)
      return rows[0]?.id ?? null
    },
    async flush() {
      await client.query('VACUUM ANALYZE')
      await client.query('CHECKPOINT')
    },
    async diskBytes() {
      const { rows } = await client.query<{ bytes: string }>('SELECT pg_database_size(current_database()) AS bytes')
      return Number(rows[0]?.bytes)
    },
    close: () => client.end(),
  }
}
