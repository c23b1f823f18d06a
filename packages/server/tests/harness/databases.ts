/** Creates PostgreSQL databases, one for each test. */
import pg from 'pg'

export interface Database {
  readonly url: string
  /** Drops the database, also while clients are connected. */
  drop(): Promise<void>
}

/** Connections for creating databases, one per server, kept open during the tests. */
const servers = new Map<string, pg.Pool>()

function connect(serverUrl: string): pg.Pool {
  const known = servers.get(serverUrl)
  if (known) return known
  const server = new pg.Pool({ connectionString: serverUrl, max: 1 })
  // A server started by a test may stop before this connection is closed.
  server.on('error', () => undefined)
  servers.set(serverUrl, server)
  return server
}

/** Creates an empty database; `serverUrl` names any database of the server. */
export async function createDatabase(serverUrl: string): Promise<Database> {
  const server = connect(serverUrl)
  const name = `test_${crypto.randomUUID().replaceAll('-', '')}`
  // The only template that never has connections, which CREATE DATABASE requires.
  await server.query(`CREATE DATABASE ${name} TEMPLATE template0`)
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return {
    url: url.href,
    async drop() {
      await server.query(`DROP DATABASE ${name} WITH (FORCE)`)
    },
  }
}
