/** Starting with a damaged data folder, or with data that the configuration no longer declares. */
import { afterEach, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { open } from '../../harness/config.ts'
import { engines } from '../../harness/engines.ts'
import { runCommand } from '../../harness/processes/command.ts'
import { type SpawnedServer, spawnServer } from '../../harness/processes/spawn.ts'
import { describeServer, rootKey, tokenSecret } from '../../harness/server.ts'
import { upload } from '../../harness/storage/files.ts'

const table = "{ schema: { text: { type: 'string' } }, access: { insert: true, read: true } }"
const config = `export default {
  databases: {
    shared: { tables: { notes: ${table} } },
    space: { instance: true, access: () => true, tables: { notes: ${table} } },
  },
  storage: { buckets: { files: { access: { read: true, write: true } } } },
}`
const notes = '/api/db/shared/tables/notes'
const environment = { PLINTH_SECRET: tokenSecret, PLINTH_SERVICE_KEY: rootKey }

describe('a damaged data folder', () => {
  let server: SpawnedServer | null = null
  afterEach(async () => {
    await server?.remove()
    server = null
  })
  async function serve(): Promise<SpawnedServer> {
    server = await spawnServer(config, engines[0])
    expect((await server.anonymous.post(notes, { text: 'kept' })).status).toBe(201)
    expect((await server.anonymous.post('/api/db/space/one/tables/notes', { text: 'kept' })).status).toBe(201)
    expect((await upload(server.service, 'files', { key: 'a', content: 'kept' })).status).toBe(201)
    return server
  }
  const plinth = (words: readonly string[], { dataFolder }: SpawnedServer) =>
    runCommand(
      [
        ...words,
        '--data',
        dataFolder,
        ...(words[0] === 'doctor' ? [] : ['--config', join(dirname(dataFolder), 'plinth.config.ts')]),
      ],
      environment,
    )
  const databases = (running: SpawnedServer, name: string): string => join(running.dataFolder, 'databases', name)

  const damages: readonly [string, (path: string) => void, string][] = [
    ['missing', (path) => rmSync(path), 'databases/shared.sqlite is missing'],
    ['empty', (path) => truncateSync(path), 'databases/shared.sqlite is empty'],
    ['without its write-ahead log', (path) => rmSync(`${path}-wal`), 'databases/shared.sqlite-wal is missing'],
  ]
  for (const [what, damage, sentence] of damages)
    test(`[FAULT-5] a database that is ${what} prevents the start until the loss is accepted`, async () => {
      const running = await serve()
      await running.kill()
      damage(databases(running, 'shared.sqlite'))
      const before = readdirSync(join(running.dataFolder, 'databases')).toSorted()
      const { code, out, error } = await plinth(['start', '--port', '0'], running)
      expect({ code, out }).toEqual({ code: 1, out: '' })
      expect(error).toContain(sentence)
      expect(error).toContain('--accept-loss')
      expect(error).not.toContain('    at ')
      expect(readdirSync(join(running.dataFolder, 'databases')).toSorted()).toEqual(before)
      const doctor = await plinth(['doctor'], running)
      expect(doctor).toMatchObject({ code: 1, error: expect.stringContaining(sentence) })
      expect((await plinth(['migrate'], running)).error).toContain(sentence)
      await running.start(['--accept-loss'])
      expect((await running.anonymous.post(notes, { text: 'again' })).status).toBe(201)
      // The accepted loss is not reported again.
      await running.kill()
      await running.start()
      expect((await running.anonymous.get(notes)).status).toBe(200)
    })

  test('[FAULT-5] no write-ahead log is required after a graceful shutdown, and none in a copy without the list of databases', async () => {
    const running = await serve()
    await running.terminate()
    rmSync(`${databases(running, 'shared.sqlite')}-wal`, { force: true })
    await running.start()
    expect((await running.anonymous.get(notes)).body.items).toHaveLength(1)
    await running.kill()
    rmSync(databases(running, '.known.json'))
    await running.start()
    expect((await running.anonymous.get(notes)).body.items).toHaveLength(1)
  })

  test('[FAULT-7] migrate shows its plan while a server runs, but applies it only while none does', async () => {
    const running = await serve()
    const shown = await plinth(['migrate'], running)
    expect(shown).toMatchObject({ code: 0, out: 'The data is compatible with the configuration.\n' })
    const next = config.replace(
      "text: { type: 'string' }",
      "text: { type: 'string' }, more: { type: 'string', required: true }",
    )
    writeFileSync(join(dirname(running.dataFolder), 'plinth.config.ts'), next)
    const refused = await plinth(['migrate'], running)
    expect(refused).toMatchObject({ code: 1, error: expect.stringContaining('more') })
    expect(readdirSync(running.dataFolder).filter((name) => name.startsWith('.'))).toEqual([])
    const applied = await plinth(['migrate', '--apply'], running)
    expect(applied).toMatchObject({ code: 1, error: expect.stringContaining('Another process') })
    expect((await running.anonymous.post(notes, { text: 'meanwhile' })).status).toBe(201)
  })

  test('[FAULT-8] doctor finds missing files, gaps in the change log and damaged databases, and refuses a served folder', async () => {
    const running = await serve()
    expect((await plinth(['doctor'], running)).error).toContain('Another process')
    await running.terminate()
    const intact = await plinth(['doctor'], running)
    expect(intact).toMatchObject({ code: 0, error: '' })
    expect(intact.out).toContain('notes 1')
    expect(intact.out).toContain('Files: 1, 0 of them not in use')
    const blobs = join(running.dataFolder, 'blobs')
    const [blob = ''] = (readdirSync(blobs, { recursive: true }) as string[]).filter((name) => name.includes('/'))
    renameSync(join(blobs, blob), join(running.dataFolder, 'away'))
    const missing = await plinth(['doctor'], running)
    expect(missing).toMatchObject({ code: 1, error: expect.stringContaining('the file "a" of the bucket "files"') })
    renameSync(join(running.dataFolder, 'away'), join(blobs, blob))
    const { Database } = await import('bun:sqlite')
    const database = new Database(databases(running, 'shared.sqlite'))
    for (let n = 0; n < 3; n++)
      database.run(`INSERT INTO _changes (at, request, "table", id) VALUES (1, 'r', 'notes', 'x')`)
    database.run('DELETE FROM _changes WHERE seq = (SELECT max(seq) - 1 FROM _changes)')
    database.close()
    expect((await plinth(['doctor'], running)).error).toContain('the change log has a gap')
    writeFileSync(databases(running, '_storage.sqlite'), 'this is no database, whatever its name says'.repeat(100))
    expect((await plinth(['doctor'], running)).error).toContain('databases/_storage.sqlite is damaged')
    expect(existsSync(databases(running, 'shared.sqlite'))).toBe(true)
  })
})

const fields = { schema: { text: { type: 'string' } }, access: open } as const
const first = {
  databases: {
    shared: { tables: { notes: fields, old: fields } },
    gone: { tables: { things: fields } },
    space: { instance: true, access: () => true, tables: { notes: fields, past: fields } },
  },
} as const
const second = {
  databases: {
    shared: { tables: { notes: fields } },
    space: { instance: true, access: () => true, tables: { notes: fields } },
  },
} as const

describeServer('undeclared tables and namespaces', { config: first }, (server) => {
  test('[FAULT-6] are logged at start and kept', async () => {
    expect((await server.service.post('/api/db/shared/tables/old', { text: 'kept' })).status).toBe(201)
    expect(server.logged()).not.toContain('not declared in the configuration')
    await server.restart(second)
    const logged = server.logged()
    for (const name of [
      'The table \\"old\\" of the namespace \\"shared\\"',
      'The namespace \\"gone\\"',
      'The table \\"past\\" of the namespace \\"space\\"',
    ])
      expect(logged).toContain(`${name} is stored but not declared in the configuration`)
    expect(logged).not.toContain('\\"notes\\" of')
    await server.restart(first)
    expect((await server.service.get('/api/db/shared/tables/old')).body.items).toHaveLength(1)
  })
})
