/** SQL databases on PostgreSQL: required privileges, several nodes and deployments, and broken connections. */
import { expect, test } from 'bun:test'
import pg from 'pg'
import { type Engine, engines, type Storage } from '../harness/engines.ts'
import { exec } from '../harness/resources/sql.ts'
import { startServer, type TestServer } from '../harness/server.ts'

const [embedded, ...shared] = engines as [Engine, ...Engine[]]
const config = { sql: { main: {} } }

/** A server on storage that other servers can share. */
const startOn = (storage: Storage, secret?: string): Promise<TestServer> =>
  startServer({ config, settings: { ...storage.settings, ...(secret === undefined ? {} : { secret }) } }, embedded)

async function withAdmin<T>(storage: Storage, work: (admin: pg.Client) => Promise<T>): Promise<T> {
  const admin = new pg.Client({ connectionString: storage.settings.databaseUrl ?? '' })
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.end()
  }
}

for (const engine of shared) {
  test('[SQL-15] the start fails with an error if the database user cannot create roles', async () => {
    const storage = await engine.openStorage()
    const name = `limited_${crypto.randomUUID().replaceAll('-', '')}`
    try {
      await withAdmin(storage, async (admin) => {
        await admin.query(`CREATE ROLE ${name} LOGIN PASSWORD 'limited'`)
        const { rows } = await admin.query('SELECT current_database() AS name')
        await admin.query(`GRANT CREATE ON DATABASE ${rows[0].name} TO ${name}`)
      })
      const url = new URL(storage.settings.databaseUrl ?? '')
      url.username = name
      url.password = 'limited'
      const limited = { ...storage, settings: { ...storage.settings, databaseUrl: url.href } }
      await expect(startOn(limited)).rejects.toThrow(/"main".*CREATEROLE/)
      await withAdmin(storage, (admin) => admin.query(`ALTER ROLE ${name} CREATEROLE`))
      const server = await startOn(limited)
      expect((await exec(server, 'SELECT 1 AS a')).body.results).toEqual([{ a: 1 }])
      await server.close()
    } finally {
      await storage.remove()
    }
  })

  test('[SQL-20, SQL-22] nodes that start together share their databases; another deployment has separate ones', async () => {
    const storage = await engine.openStorage()
    const other = await engine.openStorage()
    const nodes = await Promise.all([startOn(storage), startOn(storage), startOn(storage)])
    const otherDeployment = await startOn(other, 'another-secret-for-tests-0123456789-0123456789')
    try {
      const [first, second] = nodes
      expect((await exec(first, 'CREATE TABLE t (a INTEGER PRIMARY KEY)')).status).toBe(200)
      const all = await Promise.all(
        Array.from({ length: 30 }, (_, at) => exec(nodes[at % nodes.length] as TestServer, 'INSERT INTO t VALUES (1)')),
      )
      expect(all.filter(({ status }) => status === 200)).toHaveLength(1)
      expect((await exec(second, 'SELECT a FROM t')).body.results).toEqual([{ a: 1 }])
      expect((await exec(otherDeployment, 'SELECT a FROM t')).status).toBe(400)
    } finally {
      for (const node of [...nodes, otherDeployment]) await node.close()
      await storage.remove()
      await other.remove()
    }
  })

  test('[SQL-22] a changed secret changes the passwords of roles and keeps the data', async () => {
    const storage = await engine.openStorage()
    try {
      const before = await startOn(storage)
      await exec(before, 'CREATE TABLE t (a INTEGER)')
      await before.close()
      const after = await startOn(storage, 'another-secret-for-tests-0123456789-0123456789')
      expect((await exec(after, 'SELECT count(*) AS n FROM t')).body.results).toEqual([{ n: 0 }])
      await after.close()
    } finally {
      await storage.remove()
    }
  })

  test('[SQL-22, SQL-23] a node with an outdated secret is 503, and the error does not contain the role', async () => {
    const storage = await engine.openStorage()
    const before = await startOn(storage)
    const after = await startOn(storage, 'another-secret-for-tests-0123456789-0123456789')
    try {
      const { status, text } = await exec(before, 'SELECT 1')
      expect(status).toBe(503)
      expect(text).not.toContain('plinth_sql')
      expect((await exec(after, 'SELECT 1')).status).toBe(200)
    } finally {
      await before.close()
      await after.close()
      await storage.remove()
    }
  })

  test('[SQL-7] a statement that exceeds temp_file_limit is 400 with the message of PostgreSQL', async () => {
    const storage = await engine.openStorage()
    const server = await startOn(storage)
    try {
      await withAdmin(storage, async (admin) => {
        const { rows } = await admin.query(
          "SELECT 'plinth_sql_' || oid || '_main' AS role, datname AS base FROM pg_database WHERE datname = current_database()",
        )
        await admin.query(`ALTER ROLE ${rows[0].role} IN DATABASE ${rows[0].base} SET temp_file_limit = '1MB'`)
      })
      const { status, body } = await exec(server, 'SELECT count(*) FROM generate_series(1, 1000000) x')
      expect(status).toBe(400)
      expect(body.message).toContain('temp_file_limit')
    } finally {
      await server.close()
      await storage.remove()
    }
  })

  test('[SQL-23] a statement whose connection breaks is 503 and rolled back, and the next one succeeds', async () => {
    const storage = await engine.openStorage()
    const server = await startOn(storage)
    try {
      await exec(server, 'CREATE TABLE t (a INTEGER)')
      const running = exec(server, 'WITH made AS (INSERT INTO t VALUES (1) RETURNING a) SELECT pg_sleep(20) FROM made')
      await withAdmin(storage, async (admin) => {
        const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND application_name = 'plinth _sql_main' AND wait_event = 'PgSleep'`
        while ((await admin.query(end)).rowCount === 0) await Bun.sleep(5)
      })
      expect((await running).status).toBe(503)
      expect((await exec(server, 'SELECT count(*) AS n FROM t')).body.results).toEqual([{ n: 0 }])
    } finally {
      await server.close()
      await storage.remove()
    }
  })
}
