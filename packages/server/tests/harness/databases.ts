/** Databases of the PostgreSQL that runs beside the tests, each for one test. */
import pg from 'pg'

export interface Database {
  readonly url: string
  /** Drops the database, also while clients are connected. */
  drop(): Promise<void>
}

/** The server to create databases on; one connection each, for as long as the tests run. */
const servers = new Map<string, pg.Pool>()

function connect(serverUrl: string): pg.Pool {
  const known = servers.get(serverUrl)
  if (known) return known
  const server = new pg.Pool({ connectionString: serverUrl, max: 1 })
  // A server that a test started may end before this connection does.
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
