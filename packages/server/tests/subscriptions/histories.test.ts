/**
 * Cursors of another history. After a restore, in a copy of a folder or a database, and after the log was lost, a
 * cursor is recovered only if it is from before the histories diverged.
 */
import { afterEach, expect, test } from 'bun:test'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { open } from '../harness/config.ts'
import { createDatabase } from '../harness/databases.ts'
import { engines } from '../harness/engines.ts'
import { runCommand } from '../harness/processes/command.ts'
import { changesIn, watch } from '../harness/records/live.ts'
import { rootKey, startServer, type TestServer, tokenSecret } from '../harness/server.ts'

const items = '/api/db/shared/tables/items'
const config = {
  databases: { shared: { tables: { items: { schema: { n: { type: 'number' } }, access: open } } } },
  changes: { retention: '1h' },
}

const opened: (() => unknown)[] = []
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close()
})

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-history-'))
  opened.push(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

async function start(settings: object): Promise<TestServer> {
  const server = await startServer({ config, settings })
  opened.push(server.close)
  return server
}

/** Writes records and returns the cursor after them. */
async function write(server: TestServer, ...ids: readonly string[]): Promise<string> {
  for (const id of ids) expect((await server.service.post(items, { id })).status).toBe(201)
  const { subscribed, close } = await watch(server.url)
  await close()
  return subscribed.cursor
}

/** Resumes from a cursor: whether it was recovered, and the ids of the changes sent before a new one. */
async function resume(server: TestServer, since: unknown) {
  const { subscribed, until, close } = await watch(server.url, { subscribe: { since } })
  const id = `mark-${crypto.randomUUID()}`
  await server.service.post(items, { id })
  const changes = changesIn(await until((message) => changesIn([message]).some(({ docId }) => docId === id)))
  await close()
  return { recovered: subscribed.recovered, ids: changes.slice(0, -1).map(({ docId }) => docId) }
}

test('[SUB-68] a `since` that is not a string is not recovered, and null counts as none', async () => {
  const server = await start({})
  for (const since of [7, 0, true, {}, [], { cursor: 'x' }])
    expect(await resume(server, since)).toEqual({ recovered: false, ids: [] })
  const { subscribed, close } = await watch(server.url, { subscribe: { since: null } })
  expect('recovered' in subscribed).toBe(false)
  await close()
})

test('[SUB-69] after a restore no cursor is recovered, and list cursors stay valid', async () => {
  const folder = makeFolder()
  const original = { dataFolder: join(folder, 'original') }
  const first = await start(original)
  const before = await write(first, 'a', 'b', 'c')
  const { body } = await first.service.get(`${items}?limit=1&after=`)
  await first.close()
  const archive = join(folder, 'backup.tar')
  const environment = { PLINTH_SERVICE_KEY: rootKey, PLINTH_SECRET: tokenSecret }
  expect(await runCommand(['backup', archive, '--data', original.dataFolder], environment)).toMatchObject({ code: 0 })
  const lost = await write(await start(original), 'lost1', 'lost2')
  const data = join(folder, 'data')
  expect(await runCommand(['restore', archive, '--data', data], environment)).toMatchObject({ code: 0 })
  const restored = await start({ dataFolder: data })
  await write(restored, 'new1', 'new2', 'new3')
  for (const since of [before, lost]) expect(await resume(restored, since)).toEqual({ recovered: false, ids: [] })
  const page = await restored.service.get(`${items}?limit=1&after=${encodeURIComponent(body.cursor)}`)
  expect(page.status).toBe(200)
  expect(page.body.items).toHaveLength(1)
})

test('[SUB-69] in a copy of the data folder a cursor from before the copy is recovered, a later one is not', async () => {
  const first = await start({})
  const shared = await write(first, 'a', 'b')
  const folder = join(makeFolder(), 'data')
  await first.restart()
  cpSync(first.dataFolder, folder, {
    recursive: true,
    filter: (path) => !/lock\.sqlite|-wal$|-shm$/.test(path) || path.endsWith('-wal'),
  })
  const lost = await write(first, 'lost1', 'lost2')
  const copy = await start({ dataFolder: folder })
  await write(copy, 'new1', 'new2', 'new3')
  expect(await resume(copy, lost)).toEqual({ recovered: false, ids: [] })
  const { recovered, ids } = await resume(copy, shared)
  expect(recovered).toBe(true)
  expect(ids).toEqual(expect.arrayContaining(['new1', 'new2', 'new3']))
})

test('[SUB-69] no cursor of a lost log is recovered', async () => {
  const server = await start({})
  const cursor = await write(server, 'a')
  const folder = makeFolder()
  const second = await start({ dataFolder: folder })
  await write(second, 'a', 'b')
  expect(await resume(second, cursor)).toEqual({ recovered: false, ids: [] })
})

const [, shared] = engines
const databaseServer = process.env.PLINTH_TEST_DATABASE_URL

if (shared && databaseServer)
  test('[SUB-69] a copied PostgreSQL database recovers only cursors from before the copy, and none once its log has another id', async () => {
    const [original, copied] = [await createDatabase(databaseServer), await createDatabase(databaseServer)]
    opened.push(original.drop, copied.drop)
    const start = async (databaseUrl: string) => startServer({ config, settings: { databaseUrl } })
    const first = await start(original.url)
    const common = await write(first, 'a', 'b')
    await first.close()
    const admin = new pg.Client({ connectionString: databaseServer })
    await admin.connect()
    const nameOf = (url: string): string => new URL(url).pathname.slice(1)
    await admin.query(`DROP DATABASE ${nameOf(copied.url)}`)
    await admin.query(`CREATE DATABASE ${nameOf(copied.url)} TEMPLATE ${nameOf(original.url)}`)
    await admin.end()
    const again = await start(original.url)
    const lost = await write(again, 'lost1', 'lost2')
    await again.close()
    const copy = await start(copied.url)
    opened.push(copy.close)
    await write(copy, 'new1', 'new2', 'new3')
    expect(await resume(copy, lost)).toEqual({ recovered: false, ids: [] })
    const { recovered, ids } = await resume(copy, common)
    expect(recovered).toBe(true)
    expect(ids).toEqual(expect.arrayContaining(['new1', 'new2', 'new3']))
    const database = new pg.Client({ connectionString: copied.url })
    await database.connect()
    await database.query(`UPDATE shared._history SET id = 'another'`)
    await database.end()
    expect(await resume(copy, common)).toEqual({ recovered: false, ids: [] })
  })

if (shared && databaseServer)
  test('[SUB-69] a PostgreSQL role that cannot read the system identifier or the timeline still detects another history', async () => {
    const { url, drop } = await createDatabase(databaseServer)
    opened.push(drop)
    const role = `limited_${crypto.randomUUID().replaceAll('-', '')}`
    const admin = new pg.Client({ connectionString: url })
    await admin.connect()
    opened.push(async () => {
      await admin.query(`DROP OWNED BY ${role}`)
      await admin.query(`DROP ROLE ${role}`)
      await admin.end()
    })
    // Function privileges are per database, so other tests keep them.
    for (const name of [
      'pg_control_system()',
      'pg_control_checkpoint()',
      'pg_walfile_name(pg_lsn)',
      'pg_current_wal_lsn()',
    ])
      await admin.query(`REVOKE EXECUTE ON FUNCTION ${name} FROM PUBLIC`)
    await admin.query(`CREATE ROLE ${role} LOGIN NOSUPERUSER PASSWORD 'limited'`)
    await admin.query(`GRANT CREATE, TEMPORARY ON DATABASE ${new URL(url).pathname.slice(1)} TO ${role}`)
    const limited = new URL(url)
    limited.username = role
    limited.password = 'limited'
    const direct = new pg.Client({ connectionString: limited.href })
    await direct.connect()
    await expect(direct.query('SELECT system_identifier FROM pg_control_system()')).rejects.toThrow('permission denied')
    await expect(direct.query('SELECT pg_walfile_name(pg_current_wal_lsn())')).rejects.toThrow('permission denied')
    await direct.end()
    const server = await start({ databaseUrl: limited.href })
    const cursor = await write(server, 'a')
    await write(server, 'b')
    const { recovered, ids } = await resume(server, cursor)
    expect(recovered).toBe(true)
    expect(ids).toEqual(expect.arrayContaining(['b']))
    // The id of the log, which the role can read, still distinguishes histories.
    const another = await write(server, 'c')
    await admin.query(`UPDATE shared._history SET id = 'another'`)
    expect(await resume(server, another)).toEqual({ recovered: false, ids: [] })
    await server.close()
  })
