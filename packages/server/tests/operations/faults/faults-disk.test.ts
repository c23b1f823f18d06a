/** The embedded engine when the disk or the data folder fails under a running server. */
import { afterEach, describe, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createSqliteSandboxes } from '../../../src/engines/sandbox/sqlite/sqlite.ts'
import { sqlDatabaseBytes, sqlRowsMax, sqlTimeoutMs } from '../../../src/limits/resources.ts'
import type { Client } from '../../harness/client.ts'
import { engines } from '../../harness/engines.ts'
import { type SpawnedServer, type SpawnOptions, spawnServer } from '../../harness/processes/spawn.ts'
import { upload } from '../../harness/storage/files.ts'

const tables = "{ notes: { schema: { text: { type: 'string' } }, access: { insert: true, read: true } } }"
const config = `export default {
  databases: { shared: { tables: ${tables} }, space: { instance: true, access: () => true, tables: ${tables} } },
  storage: { buckets: { files: { access: { read: true, write: true } } } },
  kv: { store: {} },
  sql: { main: {} },
  rateLimits: { db: { requests: 10000000 } },
}`
const notes = '/api/db/shared/tables/notes'
const inSpace = (id: string): string => `/api/db/space/${id}/tables/notes`

describe('disk faults', () => {
  let server: SpawnedServer | null = null
  afterEach(async () => {
    await server?.remove()
    server = null
  })
  const serve = async (options: SpawnOptions = {}): Promise<SpawnedServer> => {
    server = await spawnServer(config, engines[0], options)
    return server
  }
  const insert = async (client: Client, text: string, path = notes): Promise<number> =>
    (await client.post(path, { text })).status
  const textsOf = async ({ anonymous }: SpawnedServer, path = notes): Promise<string[]> =>
    (await anonymous.get(`${path}?limit=1000&sort=id`)).body.items.map(({ text }: { text: string }) => text)
  const health = async (client: Client): Promise<{ status: number; reason: string | undefined }> => {
    const { status, body } = await client.get('/api/health')
    return { status, reason: body.reason }
  }
  /** Polls health until it has this status; returns its reason. */
  async function untilHealth(status: number, client: Client): Promise<string | undefined> {
    for (;;) {
      const found = await health(client)
      if (found.status === status) return found.reason
    }
  }

  test('[FAULT-2, FAULT-1, SYS-16] after its data folder was removed, a server refuses writes with 503 and does not recreate it', async () => {
    const { anonymous, service, dataFolder } = await serve()
    expect(await insert(anonymous, 'before')).toBe(201)
    expect(await insert(anonymous, 'before', inSpace('open'))).toBe(201)
    expect((await service.post('/api/sql/main', { query: 'CREATE TABLE t (n)', params: [] })).status).toBe(200)
    expect(await health(service)).toEqual({ status: 200, reason: undefined })
    rmSync(dataFolder, { recursive: true })
    const answers = [
      await insert(anonymous, 'after'),
      await insert(anonymous, 'after', inSpace('open')),
      await insert(anonymous, 'after', inSpace('new')),
      (await anonymous.post('/api/auth/signup', { email: 'a@example.org', password: 'a long password' })).status,
      (await service.post('/api/kv/store', { action: 'set', key: 'k', value: 1 })).status,
      (await service.post('/api/sql/main', { query: 'INSERT INTO t VALUES (1)', params: [] })).status,
      (await upload(service, 'files', { key: 'file', content: 'after' })).status,
    ]
    expect(answers.filter((status) => status < 500)).toEqual([])
    expect(answers.filter((status) => status !== 503)).toEqual([])
    expect(existsSync(dataFolder)).toBe(false)
    expect(await health(anonymous)).toEqual({ status: 503, reason: undefined })
    const { status, reason } = await health(service)
    expect(status).toBe(503)
    expect(reason).toContain('The data folder was removed')
  })

  test('[FAULT-2] a data folder that was moved away and back is served again, with all acknowledged writes', async () => {
    const running = await serve()
    const { anonymous, service, dataFolder } = running
    expect(await insert(anonymous, 'one')).toBe(201)
    renameSync(dataFolder, `${dataFolder}-away`)
    expect(await insert(anonymous, 'two')).toBe(503)
    expect((await health(service)).status).toBe(503)
    renameSync(`${dataFolder}-away`, dataFolder)
    await untilHealth(200, service)
    expect(await insert(anonymous, 'three')).toBe(201)
    await running.kill()
    await running.start()
    const texts = await textsOf(running)
    expect(texts).toEqual(expect.arrayContaining(['one', 'three']))
  })

  const prlimit = (pid: number, limit: string): boolean =>
    spawnSync('prlimit', ['--pid', String(pid), limit]).status === 0
  const canLimit = prlimit(process.pid, '--core')

  test.skipIf(!canLimit)(
    '[FAULT-1] a database file that cannot grow is 503 for writes until one succeeds; reads continue',
    async () => {
      const running = await serve()
      const { anonymous, service, pid, dataFolder } = running
      expect(await insert(anonymous, 'first')).toBe(201)
      const log = join(dataFolder, 'databases', 'shared.sqlite-wal')
      prlimit(pid, `--fsize=${statSync(log).size + 20_000}:unlimited`)
      let stored = 0
      while ((await insert(anonymous, 'x'.repeat(3000))) === 201) stored += 1
      const reason = await untilHealth(503, service)
      // The request log has the same limit, and may be reported first.
      expect(reason).toMatch(/databases\/\w+\.sqlite cannot be written/)
      expect(await health(anonymous)).toEqual({ status: 503, reason: undefined })
      expect(await textsOf(running)).toHaveLength(stored + 1)
      prlimit(pid, '--fsize=unlimited')
      await untilHealth(200, service)
      expect(await insert(anonymous, 'last')).toBe(201)
      expect(await textsOf(running)).toHaveLength(stored + 2)
    },
  )

  test.skipIf(!canLimit)('[FAULT-1] health reports that no file handles are left', async () => {
    const { anonymous, service, pid } = await serve()
    expect((await health(service)).status).toBe(200)
    const handles = readdirSync(`/proc/${pid}/fd`).length
    prlimit(pid, `--nofile=${handles}:`)
    const reason = await untilHealth(503, service)
    expect(reason).toContain('file handles')
    prlimit(pid, '--nofile=4096:')
    await untilHealth(200, service)
    expect(await insert(anonymous, 'after')).toBe(201)
  })

  test.each(['page=1', 'after='])(
    '[FAULT-1] a damaged database file is 503, and health names it (%s)',
    async (mode) => {
      const running = await serve()
      for (let n = 0; n < 50; n++) expect(await insert(running.anonymous, `${n} ${'x'.repeat(2000)}`)).toBe(201)
      // A graceful shutdown moves everything from the write-ahead log into the file.
      await running.terminate()
      const path = join(running.dataFolder, 'databases', 'shared.sqlite')
      const file = openSync(path, 'r+')
      const { size } = statSync(path)
      await running.start()
      // After the first pages, which are read at startup.
      for (let at = 40 * 4096; at < size; at += 4096) writeSync(file, Buffer.alloc(4096, 0xa5), 0, 4096, at)
      closeSync(file)
      const { status, text } = await running.anonymous.get(`${notes}?limit=1000&${mode}`)
      expect(status).toBe(503)
      expect(text).not.toContain('sqlite')
      expect((await health(running.anonymous)).status).toBe(503)
      expect((await health(running.service)).reason).toContain('databases/shared.sqlite is damaged')
    },
  )

  test('[FAULT-3] the server recovers from a failed disk sync without a restart', async () => {
    const running = await serve({ preload: join(import.meta.dir, '../../harness/processes/failing-sync.ts') })
    const { anonymous, service, dataFolder } = running
    expect(await insert(anonymous, 'before')).toBe(201)
    const fault = join(dirname(dataFolder), 'sync-fails')
    writeFileSync(fault, '')
    // Concurrently: a write queued behind a failed sync must not be acknowledged by a later, successful one.
    const during = await Promise.all(Array.from({ length: 20 }, (_, n) => insert(anonymous, `during ${n}`)))
    expect(new Set(during)).toEqual(new Set([503]))
    expect(await insert(anonymous, 'refused')).toBe(503)
    expect(await textsOf(running)).toContain('before')
    const { status, reason } = await health(service)
    expect(status).toBe(503)
    expect(reason).toContain('EIO')
    rmSync(fault)
    await untilHealth(200, service)
    expect(await insert(anonymous, 'after')).toBe(201)
    await running.kill()
    await running.start()
    const texts = await textsOf(running)
    expect(texts).toEqual(expect.arrayContaining(['before', 'after']))
    expect(texts).not.toContain('refused')
  })
})

describe('a SQL database on a full disk', () => {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-full-'))
  const mount = join(folder, 'disk')
  mkdirSync(mount)
  const isMounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', mount]).status === 0

  test.skipIf(!isMounted)('[FAULT-4] is unavailable; a database at its own size limit is full', async () => {
    const fill = 'INSERT INTO t SELECT zeroblob(100000) FROM (VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10))'
    const limits = { timeoutMs: sqlTimeoutMs, rowsMax: sqlRowsMax, bytesMax: sqlDatabaseBytes, answerBytesMax: 2 ** 20 }
    const sandboxes = createSqliteSandboxes({ folder: join(mount, 'sql') })
    const roomy = createSqliteSandboxes({ folder: join(folder, 'sql') })
    const full = await sandboxes.open('main', limits)
    const bounded = await roomy.open('main', { ...limits, bytesMax: 1024 * 1024 })
    for (const one of [full, bounded]) await one.run('CREATE TABLE t (b BLOB)', [], 'ann')
    const fillUp = async (one: typeof full): Promise<never> => {
      for (;;) await one.run(fill, [], 'ann')
    }
    await expect(fillUp(full)).rejects.toMatchObject({ name: 'EngineError', kind: 'unavailable' })
    await expect(fillUp(bounded)).rejects.toMatchObject({ name: 'StatementError', kind: 'full' })
    await Promise.all([full.close(), bounded.close()])
    spawnSync('umount', [mount])
    rmSync(folder, { recursive: true, force: true })
  })
})
