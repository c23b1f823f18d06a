/** A server that is killed while it computes the fields of existing rows again: the next start continues. */
import { Database } from 'bun:sqlite'
import { afterEach, describe, expect, test } from 'bun:test'
import { copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { recomputedRowsMax } from '../../../src/limits/writes.ts'
import { query } from '../../harness/client.ts'
import { engines } from '../../harness/engines.ts'
import { type SpawnedServer, spawnServer } from '../../harness/processes/spawn.ts'

const items = '/api/db/shared/tables/items'
const count = recomputedRowsMax * 100

const configText = (computed: string): string => `
const open = { read: true, insert: true, update: true, delete: true }
export default {
  rateLimits: { db: { requests: 10000000 } },
  databases: { shared: { tables: { items: {
    schema: { a: { type: 'number' }, ${computed} },
    access: open,
  } } } },
}
`
const twice = "b: { type: 'number', unique: true, computed: (f) => f.a.times(2) }"
const thrice = "b: { type: 'number', unique: true, computed: (f) => f.a.times(3) }"

/** Reads the stored description of the table, also while the server runs. */
interface Reader {
  describe(): Promise<string>
  close(): Promise<void>
}

async function openReader({ settings, dataFolder }: SpawnedServer): Promise<Reader> {
  const { databaseUrl } = settings
  if (databaseUrl) {
    const client = new pg.Client(databaseUrl)
    await client.connect()
    const text = `SELECT description FROM "shared"."_tables" WHERE name = 'items'`
    return { describe: async () => (await client.query(text)).rows[0].description, close: () => client.end() }
  }
  const folder = mkdtempSync(join(tmpdir(), 'plinth-reader-'))
  const file = join(folder, 'shared.sqlite')
  return {
    // A copy: a second connection to the file could keep the server from opening it.
    async describe() {
      for (const end of ['', '-wal']) {
        const from = join(dataFolder, `databases/shared.sqlite${end}`)
        if (existsSync(from)) copyFileSync(from, file + end)
      }
      using database = new Database(file)
      const row = database.query(`SELECT description FROM _tables WHERE name = 'items'`).get()
      return (row as { description: string }).description
    },
    close: async () => rmSync(folder, { recursive: true }),
  }
}

describe.each(engines.map((engine) => [engine.name, engine] as const))('on %s', (_, engine) => {
  let server: SpawnedServer
  let reader: Reader
  afterEach(async () => {
    await reader.close()
    await server.remove()
  })
  /** The last row that is computed again; after all rows at the end. */
  const position = async (): Promise<string> => {
    const { stale, computed } = JSON.parse(await reader.describe())
    if (computed === undefined) return ''
    return stale ? (stale.after?.[0] ?? '') : 'z'
  }

  const configure = (computed: string): void =>
    writeFileSync(join(dirname(server.dataFolder), 'plinth.config.ts'), configText(computed))

  /** Starts the server and kills it once it has stored that it came past the row `least`, never before `from`. */
  const startAndKill = async (least: string, from = ''): Promise<void> => {
    const starting = server.start().then(
      () => 'ready',
      () => 'killed',
    )
    let after = ''
    let outcome: string | null = null
    void starting.then((one) => {
      outcome = one
    })
    while (after <= least && outcome === null) {
      after = await position()
      expect(after >= from).toBe(true)
      await new Promise(setImmediate)
    }
    await server.kill()
    expect(await starting).toBe('killed')
    expect(after > least).toBe(true)
  }

  test('[DB-COMPUTED-10] the next start continues where the last one was killed', async () => {
    server = await spawnServer(configText("c: { type: 'number' }"), engine)
    const id = (n: number): string => `i${String(n).padStart(6, '0')}`
    for (let at = 0; at < count; at += 500) {
      const inserts = Array.from({ length: 500 }, (_, n) => ({ id: id(at + n), a: at + n }))
      expect((await server.service.post(`${items}/batch`, { inserts })).status).toBe(200)
    }
    await server.kill()
    reader = await openReader(server)
    configure(`c: { type: 'number' }, ${twice}`)
    await startAndKill(id(100))
    const reached = await position()
    expect(reached).not.toBe('z')
    await startAndKill(reached, reached)
    expect(await position()).not.toBe('z')
    // Another expression is for all rows.
    configure(`c: { type: 'number' }, ${thrice}`)
    await server.start()
    const seen = new Set<number>()
    for (let page = 1; seen.size < count; page++) {
      const { body } = await server.service.get(items + query({ page, perPage: 1000 }))
      expect(body.items.length).toBeGreaterThan(0)
      for (const { a, b } of body.items) {
        expect(b).toBe(a * 3)
        seen.add(a)
      }
    }
    expect(await position()).toBe('z')
    // The unique index was created at the end.
    expect((await server.service.post(items, { a: 5 })).status).toBe(409)
    expect((await server.service.post(items, { a: -5 })).body.b).toBe(-15)
  })
})
