/** Backups of a running server, and restores: all data as of one moment. */
import { describe, expect, test } from 'bun:test'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { backupSetting, environment, restore } from '../../harness/backups.ts'
import type { Answer, Client } from '../../harness/client.ts'
import { runCommand, startCommand } from '../../harness/processes/command.ts'
import type { SpawnedServer } from '../../harness/processes/spawn.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { startServer } from '../../harness/server.ts'
import { filePath, store } from '../../harness/storage/files.ts'

const items = '/api/db/shared/tables/items'
const later = '/api/db/later/tables/items'
const space = (id: string): string => `/api/db/space/${id}/tables/items`

const configText = `
const open = { read: true, insert: true, update: true, delete: true }
const schema = { title: { type: 'string' }, n: { type: 'number' }, after: { type: 'string' } }
export default {
  rateLimits: { db: { requests: 10000000 }, storage: { requests: 10000000 }, auth: { requests: 100000 } },
  databases: {
    shared: { tables: {
      items: { schema, search: ['title'], access: open },
      owned: { schema: { authorId: { type: 'string' } }, access: { read: (auth) => auth && { authorId: auth.id } } },
    } },
    later: { tables: { items: { schema, access: open } } },
    space: { instance: true, access: () => true, tables: { items: { schema, access: open } } },
  },
  storage: { buckets: { files: { access: { read: true, write: true, delete: true } } } },
}
`
const { makeFolder, spawnEmbedded, serveArchive } = backupSetting(configText)

const backUp = (dataFolder: string, target: string, ...words: string[]) =>
  runCommand(['backup', target, '--data', dataFolder, ...words], environment)

/** Backs up the server, restores the archive, and serves it in another process. */
async function serveRestored(server: SpawnedServer): Promise<SpawnedServer> {
  const folder = makeFolder()
  const archive = join(folder, 'backup.tar')
  expect(await backUp(server.dataFolder, archive)).toMatchObject({ code: 0 })
  return serveArchive(archive)
}

async function allRecords(client: Client, path: string): Promise<Record<string, unknown>[]> {
  const rows: Record<string, unknown>[] = []
  for (let cursor = '', more = true; more; ) {
    const { status, body } = await client.get(`${path}?limit=1000&after=${encodeURIComponent(cursor)}`)
    expect(status).toBe(200)
    rows.push(...body.items)
    more = body.hasMore
    cursor = body.cursor
  }
  expect((await client.get(`${path}/count`)).body.total).toBe(rows.length)
  return rows
}

/** Writes in chains, each step after the previous one was acknowledged: a file, a record that names it, another one. */
function startLoad(server: SpawnedServer) {
  const acknowledged: { item: string; later: string; instance: string }[] = []
  let goesOn = true
  const chain = async (worker: number): Promise<void> => {
    for (let n = 0; goesOn; n++) {
      const key = `${worker}/${n}`
      await store(server.service, 'files', { key, content: key.repeat(100) })
      const item = await server.anonymous.post(items, { title: key, n })
      const after = await server.anonymous.post(later, { after: item.body.id, title: key })
      const instance = await server.anonymous.post(space(`S.${worker}`), { title: key })
      for (const { status } of [item, after, instance]) expect(status).toBe(201)
      acknowledged.push({ item: item.body.id, later: after.body.id, instance: instance.body.id })
    }
  }
  const workers = Array.from({ length: 6 }, (_, worker) => chain(worker))
  return {
    acknowledged,
    async reach(count: number): Promise<void> {
      while (acknowledged.length < count) await server.anonymous.get('/api/health')
    },
    async stop(): Promise<void> {
      goesOn = false
      await Promise.all(workers)
    },
  }
}

describe('a backup under load', () => {
  test('[BACKUP-1, BACKUP-2, BACKUP-3] contains every write acknowledged before it, as of one moment', async () => {
    const server = await spawnEmbedded()
    const load = startLoad(server)
    await load.reach(60)
    const before = [...load.acknowledged]
    const archive = join(makeFolder(), 'backup.tar')
    const made = await backUp(server.dataFolder, archive)
    expect(made).toMatchObject({ code: 0, out: expect.stringContaining(archive) })
    const during = load.acknowledged.length
    await load.reach(during + 10)
    await load.stop()
    expect(during).toBeGreaterThan(before.length)

    const restored = await serveArchive(archive)
    const itemsThere = new Map((await allRecords(restored.service, items)).map((row) => [row.id, row]))
    const laterThere = await allRecords(restored.service, later)
    const instances = (
      await Promise.all([0, 1, 2, 3, 4, 5].map((n) => allRecords(restored.service, space(`S.${n}`))))
    ).flat()
    const laterIds = new Set(laterThere.map(({ id }) => id))
    const instanceIds = new Set(instances.map(({ id }) => id))
    for (const one of before)
      expect(one).toSatisfy(
        ({ item, later, instance }) => itemsThere.has(item) && laterIds.has(later) && instanceIds.has(instance),
      )
    // For every write in the backup, the writes acknowledged before it are there too, in all databases and files.
    expect(laterThere.filter(({ after }) => !itemsThere.has(after as string))).toEqual([])
    for (const title of [...itemsThere.values(), ...instances].map((row) => row.title as string)) {
      const { status, text } = await restored.anonymous.get(filePath('files', title))
      expect(status).toBe(200)
      expect(text).toBe(title.repeat(100))
    }
    expect((await restored.anonymous.get(`${items}/search?q=0&limit=1`)).status).toBe(200)
    // The restored server accepts writes and survives a crash.
    expect((await restored.anonymous.post(items, { title: 'new' })).status).toBe(201)
    await restored.kill()
    await restored.start()
    expect((await allRecords(restored.service, items)).length).toBe(itemsThere.size + 1)
  })

  test('[BACKUP-1] users can sign in to a restored server, and its rules apply', async () => {
    const server = await spawnEmbedded()
    const person = { email: 'ann@example.com', password: 'correct horse battery' }
    const { body: signedUp } = await server.anonymous.post('/api/auth/signup', person)
    const token = { authorization: `Bearer ${signedUp.accessToken}` }
    const owned = '/api/db/shared/tables/owned'
    await server.service.post(owned, { id: 'hers', authorId: signedUp.user.id })
    await server.service.post(owned, { id: 'other', authorId: 'another-user' })
    const restored = await serveRestored(server)
    const { status, body } = await restored.anonymous.post('/api/auth/signin', person)
    expect(status).toBe(200)
    expect(body.user.id).toBe(signedUp.user.id)
    expectRefusal(await restored.anonymous.post('/api/auth/signin', { ...person, password: 'wrong password' }), 401)
    // The session is still valid, because the secret is the same.
    const { body: page } = await restored.anonymous.get(owned, token)
    expect(page.total).toBe(1)
    expect(page.items.map(({ id }: { id: string }) => id)).toEqual(['hers'])
    expectRefusal(await restored.anonymous.get(`${owned}/other`, token), 404)
    expectRefusal(await restored.anonymous.get(owned), 401)
    expect((await restored.anonymous.post('/api/auth/refresh', { refreshToken: signedUp.refreshToken })).status).toBe(
      200,
    )
  })

  test('[BACKUP-1, BACKUP-2] a backup of the data folder of a killed server contains everything', async () => {
    const server = await spawnEmbedded()
    const made = await Promise.all(
      Array.from({ length: 50 }, (_, n) => server.anonymous.post(items, { title: `t${n}` })),
    )
    await server.anonymous.post(space('A.b'), { title: 'x' })
    await server.kill()
    const restored = await serveRestored(server)
    expect((await allRecords(restored.service, items)).map(({ id }) => id).sort()).toEqual(
      made.map(({ body }) => body.id).sort(),
    )
    expect(await allRecords(restored.service, space('A.b'))).toMatchObject([{ title: 'x' }])
    // The backup has not changed the data folder.
    await server.start()
    expect(await allRecords(server.service, items)).toHaveLength(50)
  })

  test('[BACKUP-5, BACKUP-9] a killed backup or restore leaves nothing behind and works the next time', async () => {
    const server = await spawnEmbedded()
    await server.anonymous.post(items, { id: 'kept', title: 'kept' })
    // An unreferenced large file makes the backup slow enough to be killed while it runs.
    const ballast = join(server.dataFolder, 'blobs', 'zz')
    mkdirSync(ballast, { recursive: true })
    writeFileSync(join(ballast, 'ballast-zz'), '')
    truncateSync(join(ballast, 'ballast-zz'), 1_500_000_000)
    const folder = makeFolder()
    const archive = join(folder, 'backup.tar')

    const backup = startCommand(['backup', archive, '--data', server.dataFolder], environment)
    await untilGrown(`${archive}.partial/archive`)
    backup.kill('SIGKILL')
    await backup.exited
    expect(readdirSync(folder)).toEqual(['backup.tar.partial'])
    expect((await server.anonymous.post(items, { id: 'after', title: 'x' })).status).toBe(201)
    truncateSync(join(ballast, 'ballast-zz'), 400_000_000)
    expect(await backUp(server.dataFolder, archive)).toMatchObject({ code: 0 })
    expect(readdirSync(folder)).toEqual(['backup.tar'])

    const data = join(folder, 'data')
    const restoring = startCommand(['restore', archive, '--data', data], environment)
    await untilGrown(`${data}.restoring/data/blobs/zz/ballast-zz`)
    restoring.kill('SIGKILL')
    await restoring.exited
    expect(readdirSync(folder).sort()).toEqual(['backup.tar', 'data.restoring'])
    expect(await restore(archive, data)).toMatchObject({ code: 0 })
    expect(readdirSync(folder).sort()).toEqual(['backup.tar', 'data'])
    expect(statSync(join(data, 'blobs/zz/ballast-zz')).size).toBe(400_000_000)
  })
})

/** Resolves once a file exists and has content. */
async function untilGrown(path: string): Promise<void> {
  for (;;) {
    if (existsSync(path) && statSync(path).size > 1_000_000) return
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

test('[DB-VER-11] a restore restores the versions of the backup, and later versions are greater than any before', async () => {
  const versionOf = ({ headers }: Answer): number => Number(/^"(\d+)-/.exec(headers.get('etag') ?? '')?.[1])
  const server = await spawnEmbedded()
  const archive = join(makeFolder(), 'backup.tar')
  for (const table of [items, space('x')]) await server.anonymous.post(table, { id: 'a', n: 1 })
  const backedUp = [
    versionOf(await server.anonymous.get(`${items}/a`)),
    versionOf(await server.anonymous.get(`${space('x')}/a`)),
  ]
  expect(await backUp(server.dataFolder, archive)).toMatchObject({ code: 0 })
  const lost: number[] = []
  for (const table of [items, space('x')])
    for (let n = 2; n < 20; n++) lost.push(versionOf(await server.anonymous.patch(`${table}/a`, { n })))
  const restored = await serveArchive(archive)
  for (const [at, table] of [items, space('x')].entries()) {
    expect(versionOf(await restored.anonymous.get(`${table}/a`))).toBe(backedUp[at] as number)
    for (const version of lost)
      expectRefusal(await restored.anonymous.patch(`${table}/a`, { n: 0 }, { 'if-match': `"${version}"` }), 412)
    const next = await restored.anonymous.patch(`${table}/a`, { n: 0 }, { 'if-match': `"${backedUp[at]}"` })
    expect(versionOf(next)).toBeGreaterThan(Math.max(...lost))
  }
})

describe('refused commands', () => {
  test('[BACKUP-7] a restore into a served or non-empty data folder is refused', async () => {
    const server = await spawnEmbedded()
    await server.anonymous.post(items, { id: 'kept' })
    const folder = makeFolder()
    const archive = join(folder, 'backup.tar')
    expect((await backUp(server.dataFolder, archive)).code).toBe(0)
    const served = await restore(archive, server.dataFolder)
    expect(served).toMatchObject({ code: 1, error: expect.stringContaining('is serving the data folder') })
    expect((await server.anonymous.get(`${items}/kept`)).status).toBe(200)
    await server.terminate()
    expect(await restore(archive, server.dataFolder)).toMatchObject({
      code: 1,
      error: expect.stringContaining('is not empty'),
    })
    const full = join(folder, 'full')
    mkdirSync(full)
    writeFileSync(join(full, 'mine'), 'mine')
    expect(await restore(archive, full)).toMatchObject({ code: 1, error: expect.stringContaining('is not empty') })
    expect(readdirSync(full)).toEqual(['mine'])
    expect(readFileSync(join(full, 'mine'), 'utf8')).toBe('mine')
    expect(readdirSync(folder).sort()).toEqual(['backup.tar', 'full'])
    const empty = join(folder, 'empty')
    mkdirSync(empty)
    expect((await restore(archive, empty)).code).toBe(0)
  })

  test('[BACKUP-11] a backup is refused to an existing file, of an unused folder, and of PostgreSQL', async () => {
    const server = await startServer({ config: {} })
    const folder = makeFolder()
    const target = join(folder, 'there')
    await server.close()
    writeFileSync(target, 'mine')
    const local = await spawnEmbedded()
    expect(await backUp(local.dataFolder, target)).toMatchObject({
      code: 1,
      error: expect.stringContaining('exists already'),
    })
    expect(readFileSync(target, 'utf8')).toBe('mine')
    expect(await backUp(join(folder, 'nowhere'), join(folder, 'x'))).toMatchObject({
      code: 1,
      error: expect.stringContaining('No server'),
    })
    const elsewhere = { ...environment, DATABASE_URL: 'postgres://another-user@127.0.0.1:1/x' }
    const postgres = await runCommand(['backup', join(folder, 'x'), '--data', local.dataFolder], elsewhere)
    expect(postgres).toMatchObject({ code: 1, error: expect.stringContaining('pg_dump') })
    expect(readdirSync(folder)).toEqual(['there'])
    // Into the data folder itself, also through a link: the archive would contain itself.
    symlinkSync(local.dataFolder, join(folder, 'link'))
    for (const inside of [local.dataFolder, join(local.dataFolder, 'new', 'x'), join(folder, 'link', 'x')])
      expect(await backUp(local.dataFolder, inside)).toMatchObject({
        code: 1,
        error: expect.stringContaining('lies in the data folder itself'),
      })
    expect(readdirSync(local.dataFolder).filter((name) => /tar|partial|new|^x/.test(name))).toEqual([])
    // Into a folder it gets a name with its time.
    expect((await backUp(local.dataFolder, folder)).code).toBe(0)
    expect(readdirSync(folder).filter((name) => /^plinth-\d{4}-.*Z\.tar$/.test(name))).toHaveLength(1)
  })
})

describe('secrets', () => {
  test('[BACKUP-10] are archived only with a passphrase, and restored only with the same one', async () => {
    const folder = makeFolder()
    const data = join(folder, 'data')
    writeFileSync(join(folder, 'plinth.config.ts'), 'export default {}')
    // The first start generates the secrets.
    const made = await runCommand(['keys', 'list', '--config', join(folder, 'plinth.config.ts'), '--data', data])
    const [secret, key] = ['secret', 'service-key'].map((name) => readFileSync(join(data, name), 'utf8'))
    expect(made).toMatchObject({ code: 0 })
    expect(secret).toHaveLength(44)
    const words = join(folder, 'words')
    writeFileSync(words, 'nine hundred paper boats\n')
    const [bare, sealed] = [join(folder, 'bare.tar'), join(folder, 'sealed.tar')]
    const without = await runCommand(['backup', bare, '--data', data])
    expect(without).toMatchObject({ code: 0, error: expect.stringContaining('secrets are not in this backup') })
    expect((await runCommand(['backup', sealed, '--data', data, '--passphrase-file', words])).code).toBe(0)
    for (const archive of [bare, sealed])
      for (const text of [secret, key]) expect(readFileSync(archive).includes((text ?? '').trim())).toBe(false)

    const out = join(folder, 'out')
    const wrong = join(folder, 'wrong')
    writeFileSync(wrong, 'nine hundred paper boots\n')
    const short = join(folder, 'short')
    writeFileSync(short, 'short\n')
    const refused: readonly (readonly [readonly string[], string])[] = [
      [['--with-secrets'], '--passphrase-file'],
      [['--passphrase-file', words], '--with-secrets'],
      [['--with-secrets', '--passphrase-file', wrong], 'Wrong passphrase'],
      [['--with-secrets', '--passphrase-file', short], 'at least 12'],
    ]
    for (const [more, reason] of refused)
      expect(await runCommand(['restore', sealed, '--data', out, ...more])).toMatchObject({
        code: 1,
        error: expect.stringContaining(reason),
      })
    expect(readdirSync(folder).filter((name) => name.startsWith('out'))).toEqual([])
    expect(
      (await runCommand(['restore', sealed, '--data', out, '--with-secrets', '--passphrase-file', words])).code,
    ).toBe(0)
    expect(['secret', 'service-key'].map((name) => readFileSync(join(out, name), 'utf8'))).toEqual([
      secret ?? '',
      key ?? '',
    ])
    expect(statSync(join(out, 'secret')).mode & 0o777).toBe(0o600)
    const bareOut = join(folder, 'bare-out')
    expect((await runCommand(['restore', sealed, '--data', bareOut])).error).toContain(
      'were not restored: give the server its own as PLINTH_SECRET',
    )
    expect(readdirSync(bareOut).filter((name) => name === 'secret' || name === 'service-key')).toEqual([])
  })
})

describe('a full disk', () => {
  test('[BACKUP-14] fails a backup and a restore with an error, and nothing is left behind', async () => {
    const server = await spawnEmbedded()
    await server.terminate()
    const ballast = join(server.dataFolder, 'blobs', 'zz')
    mkdirSync(ballast, { recursive: true })
    writeFileSync(join(ballast, 'ballast-zz'), '')
    truncateSync(join(ballast, 'ballast-zz'), 30_000_000)
    const folder = makeFolder()
    const archive = join(folder, 'backup.tar')
    const data = join(folder, 'data')
    /** Runs a command with a small maximum file size, which has the effect of a full disk. */
    const runWithLimit = async (words: readonly string[]) => {
      const script = `ulimit -f 8000; trap '' XFSZ; exec "$@"`
      const main = join(import.meta.dir, '../../../src/main.ts')
      const command = ['bash', '-c', script, 'bash', process.execPath, main, ...words]
      const child = Bun.spawn(command, { env: { PATH: process.env.PATH ?? '' }, stdout: 'ignore', stderr: 'pipe' })
      return { error: await new Response(child.stderr).text(), code: await child.exited }
    }
    const full = { code: 1, error: expect.stringMatching(/^EFBIG: [^\n]*\n$/) }
    expect(await runWithLimit(['backup', archive, '--data', server.dataFolder])).toEqual(full)
    expect(readdirSync(folder)).toEqual([])
    expect((await backUp(server.dataFolder, archive)).code).toBe(0)
    expect(await runWithLimit(['restore', archive, '--data', data])).toEqual(full)
    expect(readdirSync(folder)).toEqual(['backup.tar'])
    expect((await restore(archive, data)).code).toBe(0)
  })
})
