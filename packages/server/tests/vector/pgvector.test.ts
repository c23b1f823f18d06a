/** pgvector with a database user who cannot create the extension, and with an index that is large already. */
import { afterEach, describe, expect, test } from 'bun:test'
import pg from 'pg'
import { createLog } from '../../src/base/log.ts'
import { openSql } from '../../src/engines/open.ts'
import { preparePlatformTables } from '../../src/engines/sql/platform-tables.ts'
import {
  createVectorTables,
  type StoredIndex,
  vectorNamespace,
  vectorTableSteps,
} from '../../src/features/vector/migrations.ts'
import { createPgvector } from '../../src/features/vector/pgvector.ts'
import { createVectorRows } from '../../src/features/vector/rows.ts'
import { createVectorWrites } from '../../src/features/vector/writes.ts'
import { createDatabase } from '../harness/databases.ts'
import { use } from '../harness/resources/vector.ts'
import { startServer } from '../harness/server.ts'

const serverUrl = process.env.PLINTH_TEST_PGVECTOR_URL ?? ''

const opened: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close()
})

async function openDatabase(): Promise<{ url: string; client: pg.Client }> {
  const { url, drop } = await createDatabase(serverUrl)
  opened.push(drop)
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  opened.push(() => client.end())
  return { url, client }
}

describe.if(serverUrl !== '')('pgvector', () => {
  const definition = {
    name: 'docs',
    dimensions: 2,
    metric: 'euclidean',
    metadataIndexes: ['n'],
    engine: 'auto',
  } as const

  test('[VEC-25] a large index is searched without database indexes until an operator runs the logged statements', async () => {
    const { url, client } = await openDatabase()
    const lines: string[] = []
    const log = createLog({ level: 'debug', format: 'json', write: (text) => void lines.push(text) })
    const sql = await openSql({ databaseUrl: url, dataFolder: '', prepareInstance: async () => undefined, log })
    opened.push(() => sql.close())
    const tables = createVectorTables(sql)
    await preparePlatformTables(tables.database, vectorNamespace, 'vector', vectorTableSteps)
    const rows = createVectorRows(tables)
    const [index] = (await tables.prepareIndexes([definition])) as [StoredIndex]
    const vectors = [1, 2, 3].map((x) => ({
      id: `v${x}`,
      values: Float32Array.of(x, 0),
      metadata: JSON.stringify({ n: x }),
      namespace: '',
    }))
    await createVectorWrites(tables).put(
      index,
      vectors,
      { replaces: true, sizeMax: 10 },
      { effectKey: undefined, caller: 'ann', nowMs: 0 },
    )
    const pgvector = createPgvector(tables.database, rows, log, 2)
    expect(await pgvector.find()).toBe(true)
    const names = async () =>
      (await client.query("SELECT indexname FROM pg_indexes WHERE schemaname = '_vector' ORDER BY 1")).rows
        .map(({ indexname }) => indexname as string)
        .filter((name) => /_(nearest|namespace|metadata)$/.test(name))
    const search = async () => {
      const conditions = [{ field: 'n', operator: '>' as const, value: 1 }]
      const wanted = { values: false, metadata: false }
      const vector = Float32Array.of(0, 0)
      const found = await pgvector.openSearcher(index).search({ vector, topK: 5, namespace: null, conditions, wanted })
      return found.map(({ id, score }) => [id, score])
    }
    const expected = [
      ['v2', 2],
      ['v3', 3],
    ]
    await pgvector.prepareIndex(index)
    log.flush()
    expect(await names()).toEqual([])
    expect(await search()).toEqual(expected)
    const { statements, vectors: count } = JSON.parse(lines.join('').trim().split('\n').at(-1) ?? '{}')
    expect(count).toBe(3)
    expect(statements).toHaveLength(3)
    for (const statement of statements) await client.query(statement)
    const built = ['vectors_1_metadata', 'vectors_1_namespace', 'vectors_1_nearest']
    expect(await names()).toEqual(built)
    expect(await search()).toEqual(expected)
    // Existing indexes are kept; an index that is no longer used is dropped.
    lines.length = 0
    await pgvector.prepareIndex(index)
    log.flush()
    expect(lines).toEqual([])
    await pgvector.removeIndex(index)
    expect(await names()).toEqual([])
    await createPgvector(tables.database, rows, log).prepareIndex(index)
    expect(await names()).toEqual(built)
    expect(await search()).toEqual(expected)
  })

  test('[VEC-25] if the database user cannot create the extension, searches run in memory and the log reports it', async () => {
    const { url, client } = await openDatabase()
    const name = `plain_${crypto.randomUUID().replaceAll('-', '')}`
    await client.query(`CREATE ROLE ${name} LOGIN PASSWORD 'plain'`)
    opened.unshift(async () => {
      const server = new pg.Client({ connectionString: serverUrl })
      await server.connect()
      await server.query(`DROP ROLE ${name}`)
      await server.end()
    })
    const plainUrl = new URL(url)
    await client.query(`ALTER DATABASE ${plainUrl.pathname.slice(1)} OWNER TO ${name}`)
    plainUrl.username = name
    plainUrl.password = 'plain'
    const server = await startServer({
      config: { vector: { docs: definitionOf() } },
      settings: { databaseUrl: plainUrl.href },
    })
    opened.push(server.close)
    expect(server.logged()).toContain('pgvector.creation_denied')
    await use(server, 'docs', 'upsert', { vectors: [{ id: 'a', values: [1, 0] }] })
    expect(await use(server, 'docs', 'search', { vector: [0, 0] })).toEqual({
      matches: [{ id: 'a', score: 1 }],
      count: 1,
    })
    // The next start after an administrator has created the extension uses it.
    await client.query('CREATE EXTENSION vector')
    await server.restart()
    const { rows } = await client.query("SELECT 1 FROM pg_indexes WHERE indexname = 'vectors_1_nearest'")
    expect(rows.length).toBe(1)
    expect(await use(server, 'docs', 'search', { vector: [0, 0] })).toEqual({
      matches: [{ id: 'a', score: 1 }],
      count: 1,
    })
  })

  const definitionOf = () => {
    const { name: _, ...written } = definition
    return written
  }
})
