/**
 * Faults of a real PostgreSQL server: a full disk, a damaged table, no memory for locks. What callers and health
 * report, and that the node recovers.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chownSync, closeSync, mkdtempSync, openSync, readSync, rmSync, statSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { openPostgres } from '../../../../../scripts/servers/postgres.ts'
import type { PrivateServer } from '../../../../../scripts/servers/private-server.ts'
import { type PostgresPrograms, providePostgres } from '../../../../../scripts/servers/programs.ts'
import { MiB } from '../../../src/limits/units.ts'
import { closeAfterEach } from '../../harness/closing.ts'
import { open } from '../../harness/config.ts'
import { createDatabase } from '../../harness/databases.ts'
import { untilStatus } from '../../harness/nodes.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { startServer, type TestServer } from '../../harness/server.ts'

const items = '/api/db/shared/tables/items'
const config = { databases: { shared: { tables: { items: { access: open } } } } }

const closing = closeAfterEach()

/** A session of the administrator. */
async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  return closing(client, () => client.end().catch(() => undefined))
}

async function startNode(databaseUrl: string): Promise<TestServer> {
  const node = closing(await startServer({ config, settings: { databaseUrl } }), (node) => node.close())
  expect((await node.service.post(items, { id: 'kept', n: 1 })).status).toBe(201)
  return node
}

/** The reason that health reports to a service key, once its status is 503. */
async function untilReason(node: TestServer): Promise<string> {
  await untilStatus(503, node, '/api/health')
  const { body } = await node.service.get('/api/health')
  expect(body).toMatchObject({ engines: { sql: 'unavailable' } })
  return body.reason
}

/** Asserts an error with `Retry-After` and without messages of PostgreSQL. */
function expectAway(answer: Parameters<typeof expectRefusal>[0]): void {
  expect(expectRefusal(answer, 503)).toMatchObject({ slug: 'unavailable' })
  expect(answer.headers.get('retry-after')).toBe('1')
}

const run = (...command: string[]): boolean =>
  Bun.spawnSync(command, { stdio: ['ignore', 'ignore', 'ignore'] }).exitCode === 0

/** A file system of this many bytes; null where it cannot be mounted. */
function mountSmallDisk(bytes: number): string | null {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-disk-'))
  if (run('mount', '-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', folder)) return folder
  rmSync(folder, { recursive: true })
  return null
}

function unmount(folder: string): void {
  run('umount', '--lazy', folder)
  rmSync(folder, { recursive: true, force: true })
}

const serverUrl = process.env.PLINTH_TEST_DATABASE_URL
const canMount = process.platform === 'linux' && process.getuid?.() === 0
if (serverUrl !== undefined && !canMount)
  console.warn('Skipped: a full disk of PostgreSQL; it needs root, to mount one.')

describe.if(serverUrl !== undefined)('PostgreSQL', () => {
  let server: PrivateServer
  beforeAll(async () => {
    const settings = { max_connections: '20', max_locks_per_transaction: '10', autovacuum: 'off' }
    server = await openPostgres(providePostgres() as PostgresPrograms, settings)
  })
  afterAll(() => server.remove())

  async function newDatabase(): Promise<string> {
    const database = await createDatabase(server.url)
    return closing(database, ({ drop }) => drop().catch(() => undefined)).url
  }

  test.skipIf(!canMount)(
    '[AWAY-10] with a full disk writes are refused and reads continue, until there is space again',
    async () => {
      const disk = mountSmallDisk(64 * MiB)
      if (disk === null) return console.warn('Skipped: this system does not allow mounting a file system.')
      closing(disk, async () => unmount(disk))
      const { uid, gid } = statSync(server.folder)
      chownSync(disk, uid, gid)
      const url = await newDatabase()
      const name = new URL(url).pathname.slice(1)
      const admin = await connect(server.url)
      await admin.query(`CREATE TABLESPACE small_${name} LOCATION '${disk}'`)
      closing(admin, () => admin.query(`DROP TABLESPACE small_${name}`))
      closing(admin, () => admin.query(`DROP DATABASE ${name} WITH (FORCE)`))
      await admin.query(`ALTER DATABASE ${name} SET TABLESPACE small_${name}`)
      const node = closing(await startNode(url), (node) => node.close())
      const ballast = join(disk, 'ballast')
      expect(run('dd', 'if=/dev/zero', `of=${ballast}`, 'bs=64k')).toBe(false)
      const text = 'x'.repeat(100_000)
      // The database files have free pages, so the first writes succeed.
      let answer = await node.service.post(items, { text })
      while (answer.status === 201) answer = await node.service.post(items, { text: text + crypto.randomUUID() })
      expectAway(answer)
      expect(await untilReason(node)).toContain('the disk of the server is full')
      expectAway(await node.anonymous.post(items, { id: 'refused' }))
      expect((await node.anonymous.get(`${items}/kept`)).body.n).toBe(1)
      rmSync(ballast)
      await untilStatus(200, node, '/api/health')
      expect((await node.service.post(items, { text })).status).toBe(201)
      expect((await node.anonymous.get(`${items}/refused`)).status).toBe(404)
      expect(node.logged()).toContain('postgres.writes_restored')
    },
  )

  test('[AWAY-10] reads of a damaged table are refused, and health reports it, until it is repaired', async () => {
    const url = await newDatabase()
    const node = await startNode(url)
    const admin = await connect(url)
    const { rows } = await admin.query(`SELECT pg_relation_filepath('shared.items') AS path`)
    await server.stop()
    const path = join(server.folder, 'data', rows[0].path)
    const original = overwrite(path, Buffer.alloc(64, 0xa5))
    await server.start()
    let answer = await node.anonymous.get(items)
    // The first requests find the connections closed.
    while (!node.logged().includes('postgres.damaged')) answer = await node.anonymous.get(items)
    expectAway(answer)
    expect(await untilReason(node)).toContain('data on the server are corrupt')
    await server.stop()
    overwrite(path, original)
    await server.start()
    await untilStatus(200, node, '/api/health')
    expect((await node.anonymous.get(`${items}/kept`)).body.n).toBe(1)
  })

  test('[AWAY-10] without memory for locks, requests that need one are refused, and health reports it, until there is memory', async () => {
    const url = await newDatabase()
    const node = await startNode(url)
    const hoarder = await connect(url)
    await hoarder.query('BEGIN')
    await expect(
      hoarder.query('SELECT pg_advisory_lock(n) FROM generate_series(1, 1000000) AS n'),
    ).rejects.toMatchObject({
      code: '53200',
    })
    const insert = () => node.service.post(items, { n: 2 }, { 'idempotency-key': crypto.randomUUID() })
    expectAway(await insert())
    expect(await untilReason(node)).toContain('the server is out of memory')
    await hoarder.end()
    await untilStatus(200, node, '/api/health')
    expect((await insert()).status).toBe(201)
  })
})

/** Overwrites the start of a file and returns the previous content. */
function overwrite(path: string, bytes: Uint8Array): Uint8Array {
  const file = openSync(path, 'r+')
  try {
    const before = Buffer.alloc(bytes.length)
    readSync(file, before, 0, before.length, 0)
    writeSync(file, bytes, 0, bytes.length, 0)
    return before
  } finally {
    closeSync(file)
  }
}
