/**
 * Vectors in SQL, the system of record: atomic writes and deletions, look-ups by id, and an ordered change log for the
 * copies that searches use. Every write locks the index's row, so that versions are committed in order.
 */

import { EngineError } from '../../engines/sql/error.ts'
import type { Reader, Transaction } from '../../engines/sql/sql.ts'
import { join, type SqlText, sql } from '../../engines/sql/sql-text.ts'
import type { VectorPage } from '../../engines/vectors/vectors.ts'
import { conflict, quotaExceeded } from '../../errors.ts'
import { vectorDeletionsKept, vectorDeletionsTrimmedMax } from '../../limits/resources.ts'
import type { NewVector } from './input.ts'
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
  /**
   * Stores vectors with distinct ids. Throws 409 if `replaces` is false and an id exists, 413 if the index would exceed
   * `sizeMax` vectors.
   */
  put(index: StoredIndex, vectors: readonly NewVector[], options: { replaces: boolean; sizeMax: number }): Promise<void>
  /** Deletes existing vectors and returns their ids in the given order. */
  remove(index: StoredIndex, ids: readonly string[]): Promise<readonly string[]>
  /** By id; absent vectors are omitted. */
  find(index: StoredIndex, ids: readonly string[], wanted: Wanted): Promise<ReadonlyMap<string, StoredVector>>
  /** By key; deleted vectors are omitted. */
  findByKeys(index: StoredIndex, keys: readonly number[], wanted: Wanted): Promise<ReadonlyMap<number, StoredVector>>
  /** The number of vectors and the version of the last change. */
  state(index: StoredIndex): Promise<{ readonly size: number; readonly version: number }>
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

/** The row of an index. */
interface StateRow {
  readonly dimensions: unknown
  readonly metric: string
  readonly version: unknown
  readonly forgotten: unknown
  readonly last_key: unknown
  readonly size: unknown
}

interface IndexState {
  readonly version: number
  readonly forgotten: number
  readonly lastKey: number
  readonly size: number
}

/** `deletionsKept`: see `vectorDeletionsKept`. */
export function createVectorRows(
  { database, indexes }: VectorTables,
  deletionsKept: number = vectorDeletionsKept,
): VectorRows {
  const { dialect } = database
  const { floats } = dialect
  const noFloats = sql`NULL`

  const columns = ({ values, metadata }: Wanted): SqlText =>
    sql`key, version, id, namespace, ${metadata ? sql`metadata` : sql`NULL AS metadata`},
      ${values ? floats.select(sql`floats`) : noFloats} AS floats`

  const toVector = ({ key, version, id, namespace, metadata, floats: selected }: VectorRow): StoredVector => ({
    key: Number(key),
    version: Number(version),
    id,
    namespace,
    metadata,
    values: selected === null ? null : toFloats(floats.toBytes(selected)),
  })

  /** Throws `EngineError` if another node has recreated an empty index with a different definition. */
  const stateOf = async (reader: Reader, index: StoredIndex, lock: SqlText): Promise<IndexState> => {
    const { name, dimensions, metric } = index.definition
    const [row] = await reader.all<StateRow>(
      sql`SELECT dimensions, metric, version, forgotten, last_key, size FROM ${indexes} WHERE name = ${name}${lock}`,
    )
    if (!row) throw new Error(`The index ${name} has not been prepared`)
    if (Number(row.dimensions) !== dimensions || row.metric !== metric)
      throw new EngineError('unavailable', `The vector index ${name} is declared differently at another node`)
    return {
      version: Number(row.version),
      forgotten: Number(row.forgotten),
      lastKey: Number(row.last_key),
      size: Number(row.size),
    }
  }

  /** The state, locked against other writers until the end of the transaction. */
  const lockState = (tx: Transaction, index: StoredIndex): Promise<IndexState> => stateOf(tx, index, dialect.forUpdate)

  const setState = (tx: Transaction, index: StoredIndex, { version, forgotten, lastKey, size }: IndexState) =>
    tx.run(
      sql`UPDATE ${indexes} SET version = ${version}, forgotten = ${forgotten}, last_key = ${lastKey}, size = ${size}
        WHERE name = ${index.definition.name}`,
    )

  async function findKeys(tx: Transaction, { vectors }: StoredIndex, ids: readonly string[]) {
    const found = await tx.all<{ id: string; key: unknown }>(
      sql`SELECT id, key FROM ${vectors} WHERE ${dialect.inList(sql`id`, ids, 'text')}`,
    )
    return new Map(found.map(({ id, key }) => [id, Number(key)]))
  }

  /** Removes old deletion records; returns the version up to which none are left. */
  async function trim(tx: Transaction, { vectors }: StoredIndex, version: number): Promise<number | null> {
    const before = version - deletionsKept
    if (before <= 0) return null
    const old = await tx.all<{ key: unknown; version: unknown }>(
      sql`SELECT key, version FROM ${vectors} WHERE id IS NULL AND version <= ${before}
        ORDER BY version LIMIT ${vectorDeletionsTrimmedMax}`,
    )
    const last = old.at(-1)
    if (!last) return null
    await tx.run(sql`DELETE FROM ${vectors} WHERE id IS NULL AND version <= ${Number(last.version)}`)
    return Number(last.version)
  }

  return {
    put(index, vectors, { replaces, sizeMax }) {
      const { vectors: table } = index
      return database.write(async (tx) => {
        const state = await lockState(tx, index)
        const ids = vectors.map(({ id }) => id)
        const known = await findKeys(tx, index, ids)
        if (known.size > 0 && !replaces) throw taken(ids, known)
        const size = state.size + ids.length - known.size
        if (size > Math.max(sizeMax, state.size)) throw quotaExceeded('The index')
        let { version, lastKey } = state
        for (const { id, namespace, metadata, values } of vectors) {
          const key = known.get(id)
          version += 1
          const list = floats.bind(values)
          if (key === undefined)
            tx.send(
              sql`INSERT INTO ${table} (key, version, id, namespace, metadata, floats)
                VALUES (${++lastKey}, ${version}, ${id}, ${namespace}, ${metadata}, ${list})`,
            )
          else
            tx.send(
              sql`UPDATE ${table} SET version = ${version}, namespace = ${namespace}, metadata = ${metadata},
                floats = ${list} WHERE key = ${key}`,
            )
        }
        await setState(tx, index, { ...state, version, lastKey, size })
      })
    },

    remove(index, ids) {
      return database.write(async (tx) => {
        const state = await lockState(tx, index)
        const known = await findKeys(tx, index, ids)
        if (known.size === 0) return []
        let { version } = state
        for (const key of known.values())
          tx.send(
            sql`UPDATE ${index.vectors} SET version = ${++version}, id = NULL, namespace = '', metadata = NULL,
              floats = NULL WHERE key = ${key}`,
          )
        const forgotten = (await trim(tx, index, version)) ?? state.forgotten
        await setState(tx, index, { ...state, version, forgotten, size: state.size - known.size })
        return ids.filter((id) => known.has(id))
      })
    },

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
    state: (index) => stateOf(database, index, sql``),

    async readChanges(index, after, begun, rowsMax) {
      const { vectors, definition } = index
      const { version, forgotten } = await stateOf(database, index, sql``)
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

/** A conflict that names every existing id. */
const taken = (ids: readonly string[], known: ReadonlyMap<string, number>) =>
  conflict(
    'A vector with this id exists',
    Object.fromEntries(
      ids.flatMap((id, at) => (known.has(id) ? [[`vectors[${at}].id`, { code: 'unique', message: 'is taken' }]] : [])),
    ),
  )

/** The database's bytes may be unaligned, so they are copied. */
const toFloats = (bytes: Uint8Array): Float32Array => new Float32Array(bytes.slice().buffer)
