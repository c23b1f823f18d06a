/** Counts staged blobs directly in the database of a running server. */
import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import pg from 'pg'
import type { TestServer } from '../server.ts'

/** The number of blobs that no file references, yet or any longer. */
export async function countLooseBlobs(server: TestServer): Promise<number> {
  const { databaseUrl, dataFolder } = server.settings()
  if (databaseUrl === null) {
    using database = new Database(join(dataFolder, 'databases/_storage.sqlite'), { readonly: true })
    return (database.query('SELECT count(*) AS n FROM blobs WHERE sweepafter IS NOT NULL').get() as { n: number }).n
  }
  const client = new pg.Pool({ connectionString: databaseUrl, max: 1 })
  try {
    const { rows } = await client.query('SELECT count(*)::int AS n FROM _storage.blobs WHERE sweepafter IS NOT NULL')
    return rows[0].n
  } finally {
    await client.end()
  }
}
