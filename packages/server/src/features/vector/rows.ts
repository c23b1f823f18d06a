/**
 * Reads vectors from SQL, the system of record: by id, by key, and as an ordered change log for the copies that
 * searches use. `writes` stores them.
 */
import { join, type SqlText, sql } from '../../engines/sql/sql-text.ts'
import type { VectorPage } from '../../engines/vectors/vectors.ts'
import { getState, type IndexState } from './index-state.ts'
import { indexedMetadata } from './metadata.ts'
import type { StoredIndex, VectorTables } from './migrations.ts'

/** A stored vector. */
export interface StoredVector {
  readonly key: number
  readonly version: number
  readonly id: string
  /** Empty for none. */
  readonly namespace: string
  /** JSON; null if absent or not requested. */
  readonly metadata: string | null
  /** Null if not requested. */
  readonly values: Float32Array | null
}

/** The optional parts to read. */
export interface Wanted {
  readonly values: boolean
  readonly metadata: boolean
}

export interface VectorRows {
  /** By id; absent vectors are omitted. */
  find(index: StoredIndex, ids: readonly string[], wanted: Wanted): Promise<ReadonlyMap<string, StoredVector>>
  /** By key; deleted vectors are omitted. */
  findByKeys(index: StoredIndex, keys: readonly number[], wanted: Wanted): Promise<ReadonlyMap<number, StoredVector>>
  /** The number of vectors and the version of the last change. */
  state(index: StoredIndex): Promise<Pick<IndexState, 'size' | 'version'>>
  /** The columns that `toVector` reads, for other statements. */
  columns(wanted: Wanted): SqlText
  toVector(row: VectorRow): StoredVector
  /** Implements `VectorSource`. */
  readChanges(index: StoredIndex, after: number, begun: number, rowsMax: number): Promise<VectorPage | null>
}

/** A row as returned; engines differ in the representation of large integers. */
export interface VectorRow {
  readonly key: unknown
  readonly version: unknown
  readonly id: string
  readonly namespace: string
  readonly metadata: string | null
  readonly floats: unknown
}

export function createVectorRows(tables: VectorTables): VectorRows {
  const { database } = tables
  const { dialect } = database
  const { floats } = dialect

  const columns = ({ values, metadata }: Wanted): SqlText =>
    sql`key, version, id, namespace, ${metadata ? sql`metadata` : sql`NULL AS metadata`},
      ${values ? floats.select(sql`floats`) : sql`NULL`} AS floats`

  const toVector = ({ key, version, id, namespace, metadata, floats: selected }: VectorRow): StoredVector => ({
    key: Number(key),
    version: Number(version),
    id,
    namespace,
    metadata,
    values: selected === null ? null : toFloats(floats.toBytes(selected)),
  })

  return {
    async find({ vectors }, ids, wanted) {
      const rows = await database.all<VectorRow>(
        sql`SELECT ${columns(wanted)} FROM ${vectors} WHERE ${dialect.inList(sql`id`, ids, 'text')}`,
      )
      return new Map(rows.map((row) => [row.id, toVector(row)]))
    },

    async findByKeys({ vectors }, keys, wanted) {
      if (keys.length === 0) return new Map()
      const rows = await database.all<VectorRow>(
        sql`SELECT ${columns(wanted)} FROM ${vectors} WHERE key IN (${listOf(keys)}) AND id IS NOT NULL`,
      )
      return new Map(rows.map((row) => [Number(row.key), toVector(row)]))
    },

    columns,
    toVector,
    state: (index) => getState(tables, index),

    async readChanges(index, after, begun, rowsMax) {
      const { vectors, definition } = index
      const { version, forgotten } = await getState(tables, index)
      if (after > version || (after > 0 && Math.max(after, begun) < forgotten)) return null
      const existing = after === 0 ? sql` AND id IS NOT NULL` : sql``
      const rows = await database.all<Omit<VectorRow, 'id'> & { readonly id: string | null }>(
        sql`SELECT key, version, id, namespace, metadata, ${floats.select(sql`floats`)} AS floats FROM ${vectors}
          WHERE version > ${after} AND version <= ${version}${existing} ORDER BY version LIMIT ${rowsMax}`,
      )
      const isLast = rows.length < rowsMax
      return {
        rows: rows.map((row) => ({
          key: Number(row.key),
          version: Number(row.version),
          values: row.id === null ? null : floats.toBytes(row.floats),
          namespace: row.namespace,
          metadata: indexedMetadata(definition.metadataIndexes, row.metadata),
        })),
        version: isLast ? version : Number(rows.at(-1)?.version),
        isLast,
        latest: version,
      }
    },
  }
}

/** Pads the list to a power of two with its last key, so that few statement texts cover all lengths. */
function listOf(keys: readonly number[]): SqlText {
  const length = 2 ** Math.ceil(Math.log2(keys.length))
  const padded = Array.from({ length }, (_, at) => keys[Math.min(at, keys.length - 1)] as number)
  return join(
    padded.map((key) => sql`${key}`),
    ', ',
  )
}

/** The database's bytes may be unaligned, so they are copied. */
const toFloats = (bytes: Uint8Array): Float32Array => new Float32Array(bytes.slice().buffer)
