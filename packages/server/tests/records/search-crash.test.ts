/** A server that is killed while it builds the index of a search for existing records: the next start builds it. */
import { Database } from 'bun:sqlite'
import { afterEach, describe, expect, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { searchFillRows } from '../../src/limits/sqlite.ts'
import { query } from '../harness/client.ts'
import { engines } from '../harness/engines.ts'
import { type SpawnedServer, spawnServer } from '../harness/processes/spawn.ts'

const count = 2 * searchFillRows + 1
const tables = { items: '/api/db/shared/tables/items', fresh: '/api/db/shared/tables/fresh' } as const
type Name = keyof typeof tables

const ranked = `search: [{ field: 'title', weight: 4 }, 'body'], searchOptions: { typos: true, substring: true },`
/** `fresh` has the index from the start, and `items` has the options given. */
const configText = (options: string): string => `
const access = { read: true, insert: true, update: true, delete: true }
const schema = { title: { type: 'string' }, body: { type: 'string' } }
export default {
  rateLimits: { db: { requests: 10000000 } },
  databases: { shared: { tables: { items: { schema, ${options} access }, fresh: { schema, ${ranked} access } } } },
}
`
const rows = Array.from({ length: count }, (_, n) => ({
  id: `i${String(n).padStart(5, '0')}`,
  title: n % 7 === 0 ? 'Heidelberg' : `place ${n.toString(36)}`,
  body: `${'abcdefghijklmnopqrstuvwxyz'.slice(n % 20, (n % 20) + 6)} 東京都${String.fromCodePoint(0x4e00 + n)}`,
}))

/** The rows of the index of a table: those of the terms with the records' ids, and those of the dictionary. */
async function readIndex({ settings, dataFolder }: SpawnedServer, name: Name): Promise<unknown[]> {
  const queriesOf = (prefix: string, key: string): string[] => [
    `SELECT term, id, weight FROM ${prefix}"_terms_${name}" AS t JOIN ${prefix}"${name}" AS r ON r.${key} = t."key"`,
    `SELECT DISTINCT entry, word FROM ${prefix}"_words_${name}"`,
  ]
  const sorted = (found: object[]) => found.map((row) => JSON.stringify(Object.values(row))).sort()
  const { databaseUrl } = settings
  if (!databaseUrl) {
    using database = new Database(join(dataFolder, 'databases/shared.sqlite'))
    return queriesOf('', '"_seq"').map((text) => sorted(database.query<object, []>(text).all()))
  }
  const client = new pg.Client(databaseUrl)
  await client.connect()
  try {
    const found: unknown[] = []
    for (const text of queriesOf('"shared".', '"id"')) found.push(sorted((await client.query(text)).rows))
    return found
  } finally {
    await client.end()
  }
}

describe.each(engines.map((engine) => [engine.name, engine] as const))('on %s', (_, engine) => {
  let server: SpawnedServer
  afterEach(() => server.remove())

  const folder = (): string => dirname(server.dataFolder)
  const configure = (options: string): void => writeFileSync(join(folder(), 'plinth.config.ts'), configText(options))

  /** Resolves once PostgreSQL runs a statement of the migration that writes terms of existing rows. */
  async function untilFilling(databaseUrl: string, isOver: () => boolean): Promise<void> {
    const client = new pg.Client(databaseUrl)
    await client.connect()
    const text = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
      AND state <> 'idle' AND query LIKE 'UPDATE "shared"."items" SET "_terms"%'`
    while (!isOver() && (await client.query(text)).rowCount === 0);
    await client.end()
  }

  /** Starts the server, which is killed after it has written the terms of some rows, here or by itself. */
  async function startAndKill(filled: number): Promise<void> {
    writeFileSync(join(folder(), 'kill-at'), String(filled))
    let outcome: string | null = null
    const starting = server.start().then(
      () => (outcome = 'ready'),
      () => (outcome = 'killed'),
    )
    const { databaseUrl } = server.settings
    if (databaseUrl) {
      await untilFilling(databaseUrl, () => outcome !== null)
      await server.kill()
    }
    expect(await starting).toBe('killed')
    rmSync(join(folder(), 'kill-at'))
  }

  const find = async (name: Name, q: string) => {
    const { body, status } = await server.service.get(
      `${tables[name]}/search${query({ q, fields: 'title', limit: 100 })}`,
    )
    return { status, total: body.total, items: body.items }
  }

  test.each([
    ['weights are added', ''],
    ['the index of the engine is replaced', `search: ['title', 'body'],`],
    ['parts of words are added', ranked.replace(', substring: true', '')],
  ])('[DB-SEARCH-21] %s in a start that is killed', async (_, before) => {
    server = await spawnServer(configText(before), engine, {
      preload: join(import.meta.dir, '../harness/processes/killed-fill.ts'),
    })
    for (const path of Object.values(tables))
      for (let at = 0; at < count; at += 500)
        expect((await server.service.post(`${path}/batch`, { inserts: rows.slice(at, at + 500) })).status).toBe(200)
    await server.kill()
    configure(ranked)
    for (const filled of [1, count - 1]) await startAndKill(filled)
    await server.start()
    for (const q of ['heidlebreg', 'eidelb', '東京都', 'plaec', 'fghijk'])
      expect([q, await find('items', q)]).toEqual([q, await find('fresh', q)])
    expect((await find('items', 'heidleberg')).total).toBe(Math.ceil(count / 7))
    await server.terminate()
    expect(await readIndex(server, 'items')).toEqual(await readIndex(server, 'fresh'))
  })
})
