/**
 * The row of an index in the list of indexes: versions, keys and the number of vectors. Every write locks it, so that
 * versions are committed in order.
 */
import { EngineError } from '../../engines/sql/error.ts'
import type { Reader, Transaction } from '../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../engines/sql/sql-text.ts'
import type { StoredIndex, VectorTables } from './migrations.ts'

export interface IndexState {
  /** Version of the last change. */
  readonly version: number
  /** Deletions up to this version are no longer known. */
  readonly forgotten: number
  readonly lastKey: number
  /** Number of vectors. */
  readonly size: number
}

interface StateRow {
  readonly dimensions: unknown
  readonly metric: string
  readonly version: unknown
  readonly forgotten: unknown
  readonly last_key: unknown
  readonly size: unknown
}

/** Throws `EngineError` if another node has recreated an empty index with a different definition. */
export const getState = ({ database, indexes }: VectorTables, index: StoredIndex): Promise<IndexState> =>
  readState(database, indexes, index, sql``)

/** The state, locked against other writers until the end of the transaction. Throws like `getState`. */
export const lockState = (
  tx: Transaction,
  { database, indexes }: VectorTables,
  index: StoredIndex,
): Promise<IndexState> => readState(tx, indexes, index, database.dialect.forUpdate)

async function readState(reader: Reader, indexes: SqlText, index: StoredIndex, lock: SqlText): Promise<IndexState> {
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

export async function setState(
  tx: Transaction,
  { indexes }: VectorTables,
  index: StoredIndex,
  { version, forgotten, lastKey, size }: IndexState,
): Promise<void> {
  await tx.run(
    sql`UPDATE ${indexes} SET version = ${version}, forgotten = ${forgotten}, last_key = ${lastKey}, size = ${size}
      WHERE name = ${index.definition.name}`,
  )
}
