/** PostgreSQL that hangs, refuses connections, changes roles or has no free connections: errors and recovery. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import pg from 'pg'
import { openPostgres, openStandby } from '../../../../../scripts/servers/postgres.ts'
import type { PrivateServer } from '../../../../../scripts/servers/private-server.ts'
import { type PostgresPrograms, providePostgres } from '../../../../../scripts/servers/programs.ts'
import { silentLog } from '../../../src/base/log.ts'
import { openPostgres as openEngine } from '../../../src/engines/postgres/postgres.ts'
import { closeAfterEach } from '../../harness/closing.ts'
import { open } from '../../harness/config.ts'
import { createDatabase } from '../../harness/databases.ts'
import { type Engine, engines } from '../../harness/engines.ts'
import { untilStatus } from '../../harness/nodes.ts'
import { spawnServer } from '../../harness/processes/spawn.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { createServer, startServer, type TestServer } from '../../harness/server.ts'
import { times } from '../../harness/times.ts'

const items = '/api/db/shared/tables/items'
const others = '/api/db/shared/tables/others'
const config = {
  databases: {
    shared: {
      tables: {
        items: { schema: { n: { type: 'number' } }, access: open },
        others: { schema: { n: { type: 'number' } }, access: open },
      },
    },
  },
  sql: { reports: {} },
}

const closing = closeAfterEach()

/** One connection of an administrator. */
function connect(url: string): pg.Pool {
  const pool = closing(new pg.Pool({ connectionString: url, max: 1 }), (pool) => pool.end())
  pool.on('error', () => undefined)
  return pool
}

async function startNode(databaseUrl: string): Promise<TestServer> {
  const node = await startServer({ config, settings: { databaseUrl } })
  closing(node, () => node.close())
  expect((await node.service.post(items, { id: 'kept', n: 1 })).status).toBe(201)
  return node
}

/** Asserts that requests that need the database are refused with `Retry-After`, and that health reports it. */
async function expectAway(node: TestServer): Promise<void> {
  await untilStatus(503, node, '/api/health')
  for (const answer of [
    await node.anonymous.get(`${items}/kept`),
    await node.anonymous.get(items),
    await node.anonymous.post(items, { id: 'refused' }),
    await node.anonymous.patch(`${items}/kept`, { n: 2 }),
    await node.service.post('/api/sql/reports', { query: 'SELECT 1' }),
  ]) {
    expect(expectRefusal(answer, 503)).toMatchObject({ slug: 'unavailable' })
    expect(answer.headers.get('retry-after')).toBe('1')
  }
}

async function expectBack(node: TestServer): Promise<void> {
  await untilStatus(200, node, '/api/health')
  expect((await node.anonymous.get(`${items}/kept`)).body.n).toBe(1)
  expect((await node.anonymous.get(`${items}/refused`)).status).toBe(404)
  expect((await node.anonymous.post(items, { id: `back-${crypto.randomUUID()}`, n: 2 })).status).toBe(201)
  expect((await node.service.post('/api/sql/reports', { query: 'SELECT 1 AS one' })).status).toBe(200)
}

/** A TCP relay that can stop forwarding, like a network that drops packets. */
function openRelay(port: number) {
  let isPaused = false
  const sockets = new Set<Bun.Socket<Ends>>()
  interface Ends {
    other: Bun.Socket<Ends> | null
    kept: Uint8Array[]
  }
  const data = (socket: Bun.Socket<Ends>, bytes: Uint8Array): void => {
    if (isPaused) return
    if (socket.data.other) socket.data.other.write(bytes)
    else socket.data.kept.push(new Uint8Array(bytes))
  }
  const close = (socket: Bun.Socket<Ends>): void => {
    sockets.delete(socket)
    socket.data.other?.end()
  }
  const listener = Bun.listen<Ends>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      async open(socket) {
        socket.data = { other: null, kept: [] }
        sockets.add(socket)
        const ends: Ends = { other: socket, kept: [] }
        const server = await Bun.connect({
          hostname: '127.0.0.1',
          port,
          data: ends,
          socket: { data, close, error: close },
        })
        sockets.add(server)
        socket.data.other = server
        for (const bytes of socket.data.kept.splice(0)) server.write(bytes)
      },
      data,
      close,
      error: close,
    },
  })
  return {
    port: listener.port,
    pause(paused: boolean) {
      isPaused = paused
    },
    close: async () => listener.stop(true),
  }
}

const serverUrl = process.env.PLINTH_TEST_DATABASE_URL

describe.if(serverUrl !== undefined)('PostgreSQL', () => {
  const programs = serverUrl === undefined ? null : (providePostgres() as PostgresPrograms)
  let server: PrivateServer
  beforeAll(async () => {
    server = await openPostgres(programs as PostgresPrograms, { max_connections: '60' })
  })
  afterAll(() => server.remove())

  async function newDatabase(): Promise<string> {
    const database = await createDatabase(server.url)
    return closing(database, ({ drop }) => drop().catch(() => undefined)).url
  }

  test('[AWAY-1] when the network drops packets, waiting requests are refused, later ones immediately, until it recovers', async () => {
    const url = new URL(await newDatabase())
    const relay = closing(openRelay(server.port), ({ close }) => close())
    url.port = String(relay.port)
    const node = await startNode(url.href)
    relay.pause(true)
    // Only these requests can detect that the server is unreachable.
    const waiting = await Promise.all(times(20, (n) => node.anonymous.get(n % 2 ? `${items}/kept` : others)))
    for (const answer of waiting) expectRefusal(answer, 503)
    await expectAway(node)
    relay.pause(false)
    await expectBack(node)
  })

  test('[AWAY-1, AWAY-2] a node that is terminated while PostgreSQL is frozen exits in time', async () => {
    const frozen = closing(await openPostgres(programs as PostgresPrograms), ({ remove }) => remove())
    const engine: Engine = {
      name: 'frozen',
      openStorage: async () => ({
        settings: { databaseUrl: frozen.url },
        elapse: async () => {},
        remove: async () => {},
      }),
    }
    const text = `export default ${JSON.stringify({ databases: { shared: { tables: { items: { access: { read: true } } } } } })}`
    const node = closing(await spawnServer(text, engine), ({ remove }) => remove())
    expect((await node.anonymous.get(items)).status).toBe(200)
    const thaw = frozen.freeze()
    try {
      const waiting = times(10, () => node.anonymous.get(items).catch(() => ({ status: 503 })))
      expect(await node.terminate()).toBe(0)
      for (const { status } of await Promise.all(waiting)) expect(status).toBe(503)
    } finally {
      thaw()
    }
  }, 25_000)

  test('[AWAY-3] writes are refused while PostgreSQL is read-only', async () => {
    const url = await newDatabase()
    const node = await startNode(url)
    const admin = connect(server.url)
    const name = new URL(url).pathname.slice(1)
    await admin.query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`)
    await endSessions(admin, name)
    await untilStatus(503, node, '/api/health')
    expectRefusal(await node.anonymous.post(items, { id: 'refused' }), 503)
    expectRefusal(await node.anonymous.patch(`${items}/kept`, { n: 2 }), 503)
    await admin.query(`ALTER DATABASE ${name} SET default_transaction_read_only = off`)
    await endSessions(admin, name)
    await expectBack(node)
  })

  test('[AWAY-3] requests are refused while the password is wrong', async () => {
    const url = new URL(await newDatabase())
    const admin = connect(server.url)
    const role = `role_${crypto.randomUUID().replaceAll('-', '')}`
    await admin.query(`CREATE ROLE ${role} LOGIN SUPERUSER PASSWORD 'right-password'`)
    url.username = role
    url.password = 'right-password'
    const node = await startNode(url.href)
    await admin.query(`ALTER ROLE ${role} PASSWORD 'other-password'`)
    await endSessions(admin, url.pathname.slice(1))
    await expectAway(node)
    expect(node.logged()).toContain('password authentication failed')
    await admin.query(`ALTER ROLE ${role} PASSWORD 'right-password'`)
    await expectBack(node)
    expect(node.logged()).not.toContain('right-password')
  })

  test('[AWAY-3] requests to a dropped database are refused', async () => {
    const url = await newDatabase()
    const node = await startNode(url)
    await connect(server.url).query(`DROP DATABASE ${new URL(url).pathname.slice(1)} WITH (FORCE)`)
    await expectAway(node)
  })

  test('[AWAY-4] a locked table does not delay requests to other tables', async () => {
    const url = await newDatabase()
    const node = await startNode(url)
    const locker = connect(url)
    await locker.query('BEGIN')
    await locker.query('LOCK TABLE shared.items IN ACCESS EXCLUSIVE MODE')
    const reads = times(200, (n) => node.anonymous.get(n % 2 ? `${items}/kept` : items))
    const writes = times(100, (n) => node.anonymous.post(items, { id: `locked${n}`, n }))
    for (let n = 0; n < 20; n++) {
      expect((await node.anonymous.post(others, { id: `o${n}`, n })).status).toBe(201)
      expect((await node.anonymous.get(`${others}/o${n}`)).status).toBe(200)
    }
    expect((await node.anonymous.get('/api/health')).status).toBe(200)
    for (const answer of await Promise.all([...reads, ...writes])) {
      expectRefusal(answer, 503)
      expect(answer.headers.get('retry-after')).toBe('1')
    }
    await locker.query('ROLLBACK')
    await untilStatus(200, node, `${items}/kept`)
    await expectBack(node)
  }, 60_000)

  test('[AWAY-11] 200 writes that wait for one lock leave connections to other callers', async () => {
    const url = await newDatabase()
    const node = await startNode(url)
    const [locker, watcher] = [connect(url), connect(url)]
    const address = { namespace: 'shared', instanceId: null }
    const lock = [JSON.stringify([address, 'items', 'id', 'contended'])]
    await locker.query('SELECT pg_advisory_lock(hashtextextended($1, 0))', lock)
    const waitingQuery = `SELECT count(*)::int AS n FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
    const waiting = async (): Promise<number> => (await watcher.query(waitingQuery)).rows[0].n
    const contended = times(200, (n) => node.anonymous.post(`${items}?upsert=true`, { id: 'contended', n }))
    while ((await waiting()) === 0) await Bun.sleep(1)
    const other = node.as('other')
    for (let n = 0; n < 5; n++) {
      expect((await other.post(items, { id: `beside${n}`, n })).status).toBe(201)
      expect((await other.get(`${items}/beside${n}`)).body.n).toBe(n)
    }
    expect(await waiting()).toBeLessThanOrEqual(1)
    await locker.query('SELECT pg_advisory_unlock(hashtextextended($1, 0))', lock)
    const statuses = (await Promise.all(contended)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 201)).toHaveLength(1)
    // A write that waited too long for its lock may have been refused.
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(190)
  }, 60_000)

  test('[AWAY-5] the pool works with its connections while the server accepts no more', async () => {
    const url = await newDatabase()
    const node = await startNode(url)
    await fillConnections(url)
    const answers = await Promise.all(
      times(100, (n) =>
        n % 2 ? node.anonymous.get(`${items}/kept`) : node.anonymous.post(items, { id: `few${n}`, n }),
      ),
    )
    for (const { status } of answers) expect([200, 201]).toContain(status)
    expect((await node.anonymous.get('/api/health')).status).toBe(200)
    expect(node.logged()).toContain('postgres.pool_reduced')
  }, 60_000)

  test('[AWAY-7] a node that starts before its server waits for it', async () => {
    const late = closing(await openPostgres(programs as PostgresPrograms), ({ remove }) => remove())
    await late.stop()
    const node = createServer({ config, settings: { databaseUrl: late.url } }, engines[0] as Engine)
    closing(node, () => node.close())
    const opening = node.open()
    while (!node.logged().includes('postgres.waiting')) await Bun.sleep(10)
    await late.start()
    await opening
    expect((await node.anonymous.get('/api/health')).status).toBe(200)
    expect(node.logged()).not.toContain(new URL(late.url).password)
  })

  test('[AWAY-7] the error about an unreachable or unusable server does not contain its password', async () => {
    const url = new URL(server.url)
    const { port, password } = url
    const refusal = (href: string) =>
      openEngine({ url: href, log: silentLog, startMs: 0 })
        .waitUntilReady()
        .then(
          () => 'none',
          ({ message }: Error) => message,
        )
    url.pathname = '/nowhere'
    expect(await refusal(url.href)).toStartWith(`PostgreSQL at 127.0.0.1:${port}, database "nowhere" cannot be used: `)
    url.port = '1'
    expect(await refusal(url.href)).toStartWith(
      'PostgreSQL at 127.0.0.1:1, database "nowhere" did not answer within 0 seconds: ',
    )
    const wrong = await refusal(server.url.replace(password, 'wrong-password'))
    expect(wrong).toContain('refuses the user or its password')
    expect(wrong).not.toContain('wrong-password')
  })

  test('[AWAY-6] a promoted standby takes over if the URL names both hosts', async () => {
    const primary = closing(await openPostgres(programs as PostgresPrograms), ({ remove }) => remove())
    const standby = closing(await openStandby(programs as PostgresPrograms, primary), ({ remove }) => remove())
    const url = new URL(primary.url)
    const both = primary.url.replace(url.host, `127.0.0.1:${standby.port},${url.host}`)
    const node = await startNode(`${both}?target_session_attrs=read-write`)
    const admin = connect(standby.url)
    // Replication to the standby takes a moment.
    const isThere = `SELECT EXISTS (SELECT FROM shared.items) AS found`
    const follows = () =>
      admin.query(isThere).then(
        ({ rows }) => rows[0]?.found === true,
        () => false,
      )
    while (!(await follows())) await new Promise((resolve) => setTimeout(resolve, 10))
    await primary.crash()
    await expectAway(node)
    await admin.query('SELECT pg_promote()')
    await expectBack(node)
  }, 60_000)
})

/** Ends every session in a database, so that new ones have the current settings. */
async function endSessions(admin: pg.Pool, database: string): Promise<void> {
  await admin.query('SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1', [database])
}

/** Opens all connections that the server still accepts. */
async function fillConnections(url: string): Promise<void> {
  for (;;) {
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => undefined)
    try {
      await client.connect()
    } catch (error) {
      expect((error as pg.DatabaseError).code).toBe('53300')
      return
    }
    closing(client, () => client.end())
  }
}
