/** Files that are mapped into memory: whatever SQLite does to them, a process continues to read them. */
import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mappedReadsMin } from '../../../src/limits/sqlite.ts'
import { environment, restore } from '../../harness/backups.ts'
import { runCommand } from '../../harness/processes/command.ts'
import { spawnServer } from '../../harness/processes/spawn.ts'

const program = join(import.meta.dir, '../../harness/processes/mapped-reader.ts')
const isLinux = process.platform === 'linux'

/** Starts a process that reads the rows of a file; `passes` resolves after so many more passes that count so many. */
function startReader(path: string) {
  const child = Bun.spawn([process.execPath, program, path], { stdin: 'pipe', stdout: 'pipe', stderr: 'pipe' })
  const output = child.stdout.getReader()
  let rest = ''
  async function nextPass(): Promise<number> {
    while (!rest.includes('\n')) {
      const { value, done } = await output.read()
      if (done) throw new Error(`The reader has ended: ${child.signalCode ?? child.exitCode}`)
      rest += new TextDecoder().decode(value)
    }
    const [line = '', ...others] = rest.split('\n')
    rest = others.join('\n')
    return Number(line)
  }
  return {
    pid: child.pid,
    async passes(rows: number, count = 3): Promise<void> {
      for (let left = count; left > 0; ) if ((await nextPass()) === rows) left -= 1
    },
    async end(): Promise<number> {
      await child.stdin.end()
      while (!(await output.read()).done);
      return child.exited
    },
  }
}

const isMapped = (pid: number, path: string): boolean =>
  readFileSync(`/proc/${pid}/maps`, 'utf8')
    .split('\n')
    .some((line) => line.endsWith(path))

test.skipIf(!isLinux)(
  '[FAULT-11] a mapped file is written, checkpointed, vacuumed, truncated and grown by SQLite',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'plinth-mapped-'))
    const path = join(folder, 'items.sqlite')
    const database = new Database(path)
    try {
      database.run('PRAGMA journal_mode = WAL')
      database.run('PRAGMA busy_timeout = 1000')
      database.run('CREATE TABLE items (id INTEGER PRIMARY KEY, text TEXT)')
      const insert = database.prepare('INSERT INTO items (id, text) VALUES (?, ?)')
      const fill = database.transaction((from: number, count: number) => {
        for (let id = from; id < from + count; id++) insert.run(id, `${id} `.repeat(500))
      })
      const isCheckpointed = (): boolean =>
        database.query<{ busy: number }, []>('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy === 0
      fill(1, 500)
      expect(isCheckpointed()).toBe(true)
      const reader = startReader(path)
      /** The log is emptied as soon as no transaction needs it. */
      const checkpoint = async (rows: number): Promise<void> => {
        while (!isCheckpointed()) await reader.passes(rows, 1)
      }
      await reader.passes(500)
      expect(isMapped(reader.pid, path)).toBe(true)
      for (let round = 0; round < 5; round++) {
        const full = statSync(path).size
        database.run('DELETE FROM items WHERE id > 20')
        await reader.passes(20, 1)
        // The file shrinks while it is mapped.
        database.run('VACUUM')
        await checkpoint(20)
        expect(statSync(path).size).toBeLessThan(full)
        await reader.passes(20, 1)
        fill(21, 480)
        await checkpoint(500)
        await reader.passes(500)
      }
      expect(await reader.end()).toBe(0)
    } finally {
      database.close()
      rmSync(folder, { recursive: true })
    }
  },
  60_000,
)

const configText = `
const open = { read: true, insert: true, update: true, delete: true }
export default {
  rateLimits: { db: { requests: 10000000 } },
  limits: { writeBytes: '4gb' },
  databases: { shared: { tables: { items: { schema: { text: { type: 'text' } }, access: open } } } },
}
`
const items = '/api/db/shared/tables/items'

const file = join('databases', 'shared.sqlite')

/** A server with a file that is large enough to be mapped, written and read through the API. */
async function serveLarge() {
  const server = await spawnServer(configText)
  const acknowledged: string[] = []
  const insert = async (text: string): Promise<number> => {
    const { status, body } = await server.service.post(items, { text })
    if (status === 201) acknowledged.push(body.id)
    return status
  }
  await Promise.all(Array.from({ length: 48 }, () => insert('x'.repeat(900_000))))
  const [first = ''] = acknowledged
  const read = async (): Promise<void> => {
    expect((await server.anonymous.get(`${items}/${first}?fields=id`)).body.id).toBe(first)
  }
  return {
    server,
    acknowledged,
    insert,
    read,
    async readUntilMapped(): Promise<void> {
      while (!isMapped(server.pid, file)) await Promise.all(Array.from({ length: Math.ceil(mappedReadsMin / 4) }, read))
    },
    async untilHealthy(): Promise<void> {
      while ((await server.service.get('/api/health')).status !== 200);
    },
    /** Kills the server while requests are in progress, and starts it again. */
    async killUnderLoad(): Promise<void> {
      const load = Array.from({ length: 8 }, async (_, n) => {
        for (;;) await (n === 0 ? insert('while it is killed') : read())
      })
      const ended = Promise.allSettled(load)
      await insert('the last')
      await server.kill()
      await ended
      await server.start()
    },
    async findLost(): Promise<string[]> {
      const { body } = await server.service.get(`${items}?fields=id&limit=1000`)
      const stored = new Set(body.items.map(({ id }: { id: string }) => id))
      return acknowledged.filter((id) => !stored.has(id))
    },
  }
}

const prlimit = (pid: number, limit: string): boolean =>
  spawnSync('prlimit', ['--pid', String(pid), limit]).status === 0
const canLimit = isLinux && prlimit(process.pid, '--core')

test.skipIf(!canLimit)(
  '[FAULT-11, FAULT-1, DB-TABLE-16] a server that reads a mapped file outlives a full disk, and a kill loses no write',
  async () => {
    const { server, acknowledged, insert, read, ...more } = await serveLarge()
    try {
      await more.readUntilMapped()
      expect(await insert('unmaps')).toBe(201)
      expect(isMapped(server.pid, file)).toBe(false)
      await more.readUntilMapped()
      // No file can be written beyond this size, so the next records find no room.
      prlimit(server.pid, '--fsize=20000:unlimited')
      const before = acknowledged.length
      await insert('y'.repeat(900_000))
      expect(acknowledged).toHaveLength(before)
      for (let n = 0; n < 100; n++) await read()
      prlimit(server.pid, '--fsize=unlimited')
      await more.untilHealthy()
      await more.readUntilMapped()
      await more.killUnderLoad()
      expect(await more.findLost()).toEqual([])
    } finally {
      await server.remove()
    }
  },
  120_000,
)

test.skipIf(!isLinux)(
  '[FAULT-10, FAULT-11] a file is mapped again after each kill of a server that had it mapped or was writing it',
  async () => {
    const { server, insert, read, ...more } = await serveLarge()
    try {
      for (let round = 0; round < 3; round++) {
        // Enough for a checkpoint, which writes into the file while it is read.
        const writes = Array.from({ length: 20 }, () => insert('z'.repeat(900_000)))
        const ended = Promise.allSettled([...writes, ...Array.from({ length: 200 }, read)])
        if (round !== 1) await ended
        if (round === 0) await more.readUntilMapped()
        await more.killUnderLoad()
        await ended
        expect(await more.findLost()).toEqual([])
        await more.readUntilMapped()
      }
    } finally {
      await server.remove()
    }
  },
  120_000,
)

test.skipIf(!isLinux)(
  '[FAULT-2, FAULT-11, BACKUP-1, BACKUP-7] a mapped file is backed up, not restored over, and moved away and back',
  async () => {
    const { server, acknowledged, insert, read, ...more } = await serveLarge()
    const { dataFolder } = server
    const archive = `${dataFolder}.tar`
    try {
      await more.readUntilMapped()
      expect(await runCommand(['backup', archive, '--data', dataFolder], environment)).toMatchObject({ code: 0 })
      const saved = [...acknowledged]
      expect(await restore(archive, dataFolder)).toMatchObject({ code: 1 })
      await more.readUntilMapped()
      renameSync(dataFolder, `${dataFolder}-away`)
      await read()
      expect(await insert('to a folder that is away')).toBe(503)
      await read()
      renameSync(`${dataFolder}-away`, dataFolder)
      await more.untilHealthy()
      expect(await insert('to the folder that is back')).toBe(201)
      await more.readUntilMapped()
      await more.killUnderLoad()
      expect(await more.findLost()).toEqual([])
      await more.readUntilMapped()
      await server.terminate()
      rmSync(dataFolder, { recursive: true })
      expect(await restore(archive, dataFolder)).toMatchObject({ code: 0 })
      await server.start()
      const lost = new Set(await more.findLost())
      expect(saved.filter((id) => lost.has(id))).toEqual([])
      await more.readUntilMapped()
    } finally {
      await server.remove()
    }
  },
  120_000,
)
