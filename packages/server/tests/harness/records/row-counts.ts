/** Reads rows of internal tables directly from the database of a running server. */
import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import pg from 'pg'
import type { TestServer } from '../server.ts'

/** The first row of a query in a static namespace; `{table}` is replaced by the name of the table. */
export async function queryRow(
  server: TestServer,
  namespace: string,
  text: string,
): Promise<Readonly<Record<string, number>>> {
  const { databaseUrl, dataFolder } = server.settings()
  if (databaseUrl === null) {
    using database = new Database(join(dataFolder, `databases/${namespace}.sqlite`), { readonly: true })
    const row = database.query(text.replaceAll(/\{(\w+)\}/g, '"$1"')).get()
    return row as Record<string, number>
  }
  const client = new pg.Pool({ connectionString: databaseUrl, max: 1 })
  try {
    const { rows } = await client.query(text.replaceAll(/\{(\w+)\}/g, `"${namespace}"."$1"`))
    return Object.fromEntries(Object.entries(rows[0]).map(([name, value]) => [name, Number(value)]))
  } finally {
    await client.end()
  }
}

/** The number of rows of a table in a static namespace. */
export const countRows = async (server: TestServer, namespace: string, table: string): Promise<number> =>
  (await queryRow(server, namespace, `SELECT count(*) AS n FROM {${table}}`)).n ?? 0

/**
 * Waits until a new cursor contains every logged change. On PostgreSQL it ends at the oldest transaction in progress in
 * the whole cluster, of other databases too, and a cursor older than a deleted change is not recovered.
 */
export async function untilLogCommitted(server: TestServer, namespace: string): Promise<void> {
  if (server.settings().databaseUrl === null) return
  const unsettled = 'SELECT count(*) AS n FROM {_changes} WHERE xid >= pg_snapshot_xmin(pg_current_snapshot())'
  for (let attempts = 0; attempts < 1000; attempts++) {
    if ((await queryRow(server, namespace, unsettled)).n === 0) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error('a transaction in progress is older than the change log')
}
