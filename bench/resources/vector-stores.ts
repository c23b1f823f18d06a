/**
 * Vector stores behind one interface: the server's search core with and without graphs, sqlite-vec in the same runtime,
 * and pgvector over a socket, each configured as its documentation recommends.
 */
import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { Client } from 'pg'
import { getLoadablePath } from 'sqlite-vec'
import { silentLog } from '../../packages/server/src/base/log.ts'
import { openVectorThreads } from '../../packages/server/src/engines/vectors/threads.ts'
import type { VectorCondition, VectorPage } from '../../packages/server/src/engines/vectors/vectors.ts'
import { folderBytes } from '../setup/folders.ts'
import { dimensions, tenthOf } from './vector-data.ts'

/** How many tenths of all vectors a search accepts. */
export type Tenths = 10 | 5 | 1

export interface VectorStore {
  /** Inserts all vectors. */
  load(values: Float32Array): Promise<void>
  /** Builds the index; resolves when it is complete. */
  build(): Promise<void>
  /** Keys of the ten nearest by cosine. */
  search(vector: Float32Array, tenths: Tenths): Promise<number[]>
  /** On disk, where it is known. */
  diskBytes(): Promise<number | null>
  close(): Promise<void>
}

export interface StoreOptions {
  readonly folder: string
  /** Of a PostgreSQL whose user may create the extension; null where none is to be measured. */
  readonly databaseUrl: string | null
}

const topK = 10

const buildMinutesMax = 20

function openPlinth(folder: string, exactValuesMax?: number): VectorStore {
  const vectors = openVectorThreads({
    folder,
    log: silentLog,
    ...(exactValuesMax === undefined ? {} : { exactValuesMax }),
  })
  let values: Float32Array = new Float32Array()
  const count = (): number => values.length / dimensions
  const source = {
    async readChanges(after: number, _begun: number, rowsMax: number): Promise<VectorPage> {
      const end = Math.min(count(), after + rowsMax)
      const rows = Array.from({ length: end - after }, (_, at) => {
        const key = after + at + 1
        const bytes = new Uint8Array(values.buffer, (key - 1) * dimensions * 4, dimensions * 4)
        return { key, version: key, values: bytes, namespace: '', metadata: [tenthOf(key)] }
      })
      return { rows, version: end, isLast: end === count(), latest: count() }
    },
  }
  const index = vectors.openIndex({ name: 'docs', dimensions, metric: 'cosine', metadataIndexes: ['tenth'], source })
  const search: VectorStore['search'] = async (vector, tenths) => {
    const conditions: VectorCondition[] = tenths === 10 ? [] : [{ field: 'tenth', operator: '<', value: tenths }]
    const matches = await index.search({ vector, topK, namespace: null, conditions, atLeast: count() })
    return matches.map(({ key }) => key)
  }
  return {
    async load(all) {
      values = all
      await search(all.subarray(0, dimensions), 10)
    },
    async build() {
      if (exactValuesMax !== undefined) return
      // A graph is saved once its recall has been measured.
      const endMs = performance.now() + buildMinutesMax * 60_000
      while (!(await hasList(folder))) {
        if (performance.now() > endMs) throw new Error('The graph was not completed in time')
        await Bun.sleep(100)
      }
    },
    search,
    diskBytes: async () => folderBytes(folder),
    close: () => vectors.close(),
  }
}

/** The node list of a graph is the last file that is written. */
const hasList = (folder: string): Promise<boolean> => Bun.file(join(folder, 'docs.nodes')).exists()

function openSqliteVec(folder: string): VectorStore {
  const db = new Database(join(folder, 'docs.db'))
  db.loadExtension(getLoadablePath())
  db.run('PRAGMA journal_mode = WAL')
  db.run(`CREATE VIRTUAL TABLE docs USING vec0(
    id INTEGER PRIMARY KEY, embedding FLOAT[${dimensions}] distance_metric=cosine, tenth INTEGER)`)
  const select = 'SELECT id FROM docs WHERE embedding MATCH ? AND k = ?'
  const all = db.query<{ id: number }, [Float32Array, number]>(select)
  const some = db.query<{ id: number }, [Float32Array, number, number]>(`${select} AND tenth < ?`)
  return {
    async load(values) {
      const insert = db.query('INSERT INTO docs (id, embedding, tenth) VALUES (?, ?, ?)')
      db.transaction(() => {
        for (let key = 1; key * dimensions <= values.length; key++)
          insert.run(key, values.subarray((key - 1) * dimensions, key * dimensions), tenthOf(key))
      })()
    },
    build: async () => {},
    search: async (vector, tenths) =>
      (tenths === 10 ? all.all(vector, topK) : some.all(vector, topK, tenths)).map(({ id }) => id),
    diskBytes: async () => folderBytes(folder),
    close: async () => db.close(),
  }
}

/** Rows sent in one statement. */
const insertRows = 500

async function openPgvector(databaseUrl: string): Promise<VectorStore> {
  const client = new Client({ connectionString: databaseUrl })
  await client.connect()
  await client.query('CREATE EXTENSION IF NOT EXISTS vector')
  await client.query(`CREATE TABLE docs (id int PRIMARY KEY, embedding vector(${dimensions}), tenth int)`)
  const textOf = (values: Float32Array): string => `[${values.join(',')}]`
  return {
    async load(values) {
      const count = values.length / dimensions
      for (let start = 1; start <= count; start += insertRows) {
        const keys = Array.from({ length: Math.min(insertRows, count - start + 1) }, (_, at) => start + at)
        const texts = keys.map((key) => textOf(values.subarray((key - 1) * dimensions, key * dimensions)))
        await client.query(
          `INSERT INTO docs SELECT id, embedding::vector, tenth
           FROM unnest($1::int[], $2::text[], $3::int[]) AS row (id, embedding, tenth)`,
          [keys, texts, keys.map(tenthOf)],
        )
      }
    },
    async build() {
      await client.query("SET maintenance_work_mem = '1GB'")
      await client.query('CREATE INDEX ON docs USING hnsw (embedding vector_cosine_ops)')
      await client.query('VACUUM ANALYZE docs')
      await client.query("SET hnsw.iterative_scan = 'strict_order'")
    },
    async search(vector, tenths) {
      const where = tenths === 10 ? '' : `WHERE tenth < ${tenths}`
      const text = `SELECT id FROM docs ${where} ORDER BY embedding <=> $1::vector LIMIT ${topK}`
      const { rows } = await client.query<{ id: number }>({ name: `search-${tenths}`, text, values: [textOf(vector)] })
      return rows.map(({ id }) => id)
    },
    async diskBytes() {
      const { rows } = await client.query<{ bytes: string }>("SELECT pg_total_relation_size('docs') AS bytes")
      return Number(rows[0]?.bytes)
    },
    close: () => client.end(),
  }
}

export const storeNames = ['Plinth, exact', 'Plinth', 'sqlite-vec', 'pgvector'] as const
export type StoreName = (typeof storeNames)[number]

/** Throws where the store is not available on this machine. */
export async function openStore(name: StoreName, { folder, databaseUrl }: StoreOptions): Promise<VectorStore> {
  if (name === 'Plinth, exact') return openPlinth(folder, Number.POSITIVE_INFINITY)
  if (name === 'Plinth') return openPlinth(folder)
  if (name === 'sqlite-vec') return openSqliteVec(folder)
  if (databaseUrl === null) throw new Error('PostgreSQL is not installed')
  return openPgvector(databaseUrl)
}
