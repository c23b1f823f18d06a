/** Backups that the server starts and lists. */
import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { keepAddress } from '../../../src/cli/served-address.ts'
import { backupSetting, environment } from '../../harness/backups.ts'
import { closeAfterEach } from '../../harness/closing.ts'
import { open } from '../../harness/config.ts'
import { type Engine, engines } from '../../harness/engines.ts'
import { runCommand } from '../../harness/processes/command.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { createServer, startServer, type TestServer } from '../../harness/server.ts'

const config = { databases: { shared: { tables: { items: { access: open } } } } }
const items = '/api/db/shared/tables/items'

const embedded = engines[0] as Engine
const closing = closeAfterEach()
const { makeFolder, serveArchive } = backupSetting(
  `export default { databases: { shared: { tables: { items: { access: { read: true } } } } } }`,
)

async function start(backupFolder: string | null): Promise<TestServer> {
  const server = closing(await startServer({ config, settings: { backupFolder } }, embedded), ({ close }) => close())
  // As `plinth start` does.
  await keepAddress(server.dataFolder, server.url)
  return server
}

const list = async (server: TestServer, query = '') => (await server.service.get(`/api/backups${query}`)).body

async function untilEnded(server: TestServer) {
  for (;;) {
    const body = await list(server)
    if (body.latestRun.state !== 'running') return body
    await Bun.sleep(5)
  }
}

test('[BACKUP-16] a backup that the server starts is complete, listed, and one at a time', async () => {
  const folder = makeFolder()
  const server = await start(folder)
  expect(await list(server)).toEqual({ state: 'ready', items: [], cursor: null, latestRun: null, bytesWritten: null })
  await server.service.post(items, { id: 'a', title: 'kept' })
  const answers = await Promise.all([1, 2, 3].map(() => server.service.request('POST', '/api/backups')))
  expect(answers.map(({ status }) => status).toSorted()).toEqual([202, 409, 409])
  const { items: found, latestRun, bytesWritten } = await untilEnded(server)
  expect(latestRun).toEqual({
    kind: 'backup',
    state: 'done',
    startedAt: expect.any(String),
    endedAt: expect.any(String),
    message: expect.stringContaining('databases and 0 files'),
  })
  expect(bytesWritten).toBeNull()
  expect(found).toEqual([
    {
      name: readdirSync(folder)[0],
      bytes: expect.any(Number),
      createdAt: expect.any(String),
      version: expect.any(String),
      hasSecrets: false,
      verification: null,
    },
  ])
  const restored = await serveArchive(join(folder, found[0].name))
  expect((await restored.service.get(`${items}/a`)).body.title).toBe('kept')
}, 60_000)

test('[BACKUP-17] backups are listed page by page, the newest first, whatever else is in the folder', async () => {
  const folder = makeFolder()
  const server = await start(folder)
  mkdirSync(join(folder, 'plinth-2026-01-09.tar'))
  mkdirSync(join(folder, 'plinth-2026-01-08.tar.partial'))
  writeFileSync(join(folder, 'plinth-2026-01-08.tar.partial', 'archive'), 'x'.repeat(7))
  writeFileSync(join(folder, 'notes.tar'), 'x')
  for (const day of [1, 2, 3]) writeFileSync(join(folder, `plinth-2026-01-0${day}.tar`), 'no backup')
  const first = await list(server, '?limit=2')
  const item = (day: number) => ({
    name: `plinth-2026-01-0${day}.tar`,
    bytes: 9,
    createdAt: null,
    version: null,
    hasSecrets: false,
    verification: null,
  })
  expect(first).toMatchObject({ items: [item(3), item(2)], bytesWritten: 7, latestRun: null })
  expect(await list(server, `?limit=2&cursor=${first.cursor}`)).toMatchObject({ items: [item(1)], cursor: null })
  expectRefusal(await server.service.get(`/api/backups?cursor=x`), 400)
})

test('[BACKUP-16] a backup that fails says why, and leaves nothing', async () => {
  const settings: { backupFolder: string | null } = { backupFolder: null }
  const server = createServer({ config, settings }, embedded)
  closing(server, ({ close }) => close())
  settings.backupFolder = join(server.dataFolder, 'backups')
  await server.open()
  await keepAddress(server.dataFolder, server.url)
  expect((await server.service.request('POST', '/api/backups')).status).toBe(202)
  const { items: found, latestRun } = await untilEnded(server)
  expect(found).toEqual([])
  expect(latestRun).toMatchObject({
    state: 'failed',
    message: expect.stringContaining('lies in the data folder itself'),
  })
}, 60_000)

test('[BACKUP-16] without a folder none is listed or started', async () => {
  const server = await start(null)
  expect(await list(server)).toMatchObject({ state: 'none', items: [] })
  expectRefusal(await server.service.request('POST', '/api/backups'), 404)
})

test('[BACKUP-18] a verification restores the backup, and finds damage that was done to it', async () => {
  const folder = makeFolder()
  const server = await start(folder)
  await server.service.post(items, { id: 'a', title: 'kept' })
  await server.service.request('POST', '/api/backups')
  const { name } = (await untilEnded(server)).items[0]
  const verify = (path: string) => server.service.request('POST', `/api/backups/${encodeURIComponent(path)}/verify`)
  const answers = await Promise.all([1, 2, 3].map(() => verify(name)))
  expect(answers.map(({ status }) => status).toSorted()).toEqual([202, 409, 409])
  const intact = await untilEnded(server)
  expect(intact.latestRun).toMatchObject({
    kind: 'verification',
    state: 'done',
    message: expect.stringContaining('is intact'),
  })
  expect(intact.items[0].verification).toEqual({ at: expect.any(String), isIntact: true, problems: [] })
  expect(readdirSync(folder).toSorted()).toEqual([name, `${name}.verified`])

  const bytes = readFileSync(join(folder, name))
  bytes[bytes.indexOf('kept')] = 0
  writeFileSync(join(folder, name), bytes)
  expect((await list(server)).items[0].verification).toBeNull()
  expect((await verify(name)).status).toBe(202)
  const damaged = await untilEnded(server)
  expect(damaged.latestRun).toMatchObject({ kind: 'verification', state: 'failed' })
  expect(damaged.items[0].verification).toMatchObject({
    isIntact: false,
    problems: ['The archive is damaged: a checksum does not match'],
  })

  for (const other of ['plinth-none.tar', '../plinth-x.tar', `${name}.verified`, '..', '%'])
    expectRefusal(await verify(other), 404)
}, 60_000)

test('[BACKUP-18] a killed verification leaves a folder that the next one removes', async () => {
  const folder = makeFolder()
  const server = await start(folder)
  await server.service.request('POST', '/api/backups')
  const { name } = (await untilEnded(server)).items[0]
  mkdirSync(join(folder, `${name}.verifying`, 'data', 'databases'), { recursive: true })
  writeFileSync(join(folder, `${name}.verifying`, 'data', 'databases', 'shared.sqlite'), 'half')
  await server.service.request('POST', `/api/backups/${name}/verify`)
  expect((await untilEnded(server)).items[0].verification).toMatchObject({ isIntact: true })
  expect(readdirSync(folder).toSorted()).toEqual([name, `${name}.verified`])
}, 60_000)

test('[BACKUP-18] a folder is no archive, and nothing is created beside it', async () => {
  const folder = makeFolder()
  mkdirSync(join(folder, 'monday.tar'))
  const { code, error } = await runCommand(['verify', join(folder, 'monday.tar')], environment)
  expect([code, error]).toEqual([1, expect.stringContaining('is not a file')])
  expect(readdirSync(folder)).toEqual(['monday.tar'])
})
