/**
 * Reads and inserts rows of the users feature beside a running server, for what no endpoint returns, such as the rows
 * left of a deleted user.
 */
import { Database as Sqlite } from 'bun:sqlite'
import { join } from 'node:path'
import pg from 'pg'
import type { Engine, Storage } from '../engines.ts'

export type Values = Readonly<Record<string, string | number | null>>

export interface UserRows {
  /** Rows of a table of the namespace `shared` in which a column has a value. */
  count(table: string, column: string, value: string): Promise<number>
  insert(table: string, values: Values): Promise<void>
  /** Runs a statement; tables are named as in `shared.users`, parameters as `?`. */
  run(text: string, values?: readonly (string | number | null)[]): Promise<Record<string, unknown>[]>
}

/** An engine that remembers the storage it opened last. */
export function watchedEngine(engine: Engine): { readonly engine: Engine; storage(): Storage } {
  let opened: Storage | null = null
  return {
    engine: {
      name: engine.name,
      async openStorage() {
        opened = await engine.openStorage()
        return opened
      },
    },
    storage() {
      if (!opened) throw new Error('the storage is not open')
      return opened
    },
  }
}

/** `dataFolder` is the data folder of the server. */
export function createUserRows(dataFolder: string, storage: () => Storage): UserRows {
  async function run(
    text: string,
    values: readonly (string | number | null)[] = [],
  ): Promise<Record<string, unknown>[]> {
    const { databaseUrl } = storage().settings
    if (databaseUrl) return runOnPostgres(databaseUrl, text, values)
    const database = new Sqlite(join(dataFolder, 'databases/shared.sqlite'))
    try {
      database.run('PRAGMA busy_timeout = 5000')
      return database.query(text.replaceAll('shared.', '')).all(...values) as Record<string, unknown>[]
    } finally {
      database.close()
    }
  }

  return {
    run,
    async count(table, column, value) {
      const [row] = await run(`SELECT count(*) AS n FROM shared.${table} WHERE ${column} = ?`, [value])
      return Number(row?.n)
    },
    async insert(table, values) {
      const names = Object.keys(values)
      const parameters = names.map(() => '?')
      await run(`INSERT INTO shared.${table} (${names}) VALUES (${parameters})`, Object.values(values))
    },
  }
}

async function runOnPostgres(
  url: string,
  text: string,
  values: readonly unknown[],
): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    let at = 0
    return (
      await client.query(
        text.replaceAll('?', () => `$${++at}`),
        [...values],
      )
    ).rows
  } finally {
    await client.end()
  }
}
