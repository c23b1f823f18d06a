/**
 * Writes of vectors in SQL, the system of record: each stores or deletes its vectors atomically, and records the change
 * for the copies that searches use.
 */
import { type Effect, writeEffect } from '../../engines/sql/effects.ts'
import type { Transaction } from '../../engines/sql/sql.ts'
import { sql } from '../../engines/sql/sql-text.ts'
import { conflict, quotaExceeded } from '../../errors.ts'
import { vectorDeletionsKept, vectorDeletionsTrimmedMax } from '../../limits/resources.ts'
import { lockState, setState } from './index-state.ts'
import type { NewVector } from './input.ts'
import { type StoredIndex, type VectorTables, vectorNamespace } from './migrations.ts'

export interface PutOptions {
  readonly replaces: boolean
  readonly sizeMax: number
}

/** A repeated write of a job changes nothing and returns what the first returned. */
export interface VectorWrites {
  /**
   * Stores vectors with distinct ids and returns these. Throws 409 if `replaces` is false and an id exists, 413 if the
   * index would exceed `sizeMax` vectors.
   */
  put(
    index: StoredIndex,
    vectors: readonly NewVector[],
    options: PutOptions,
    effect: Effect,
  ): Promise<readonly string[]>
  /** Deletes existing vectors and returns their ids in the given order. */
  remove(index: StoredIndex, ids: readonly string[], effect: Effect): Promise<readonly string[]>
}

/** `deletionsKept`: see `vectorDeletionsKept`. */
export function createVectorWrites(tables: VectorTables, deletionsKept: number = vectorDeletionsKept): VectorWrites {
  const { database } = tables
  const { dialect } = database

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

  async function put(
    tx: Transaction,
    index: StoredIndex,
    vectors: readonly NewVector[],
    { replaces, sizeMax }: PutOptions,
  ): Promise<readonly string[]> {
    const { vectors: table } = index
    const state = await lockState(tx, tables, index)
    const ids = vectors.map(({ id }) => id)
    const known = await findKeys(tx, index, ids)
    if (known.size > 0 && !replaces) throw taken(ids, known)
    const size = state.size + ids.length - known.size
    if (size > Math.max(sizeMax, state.size)) throw quotaExceeded('The index')
    let { version, lastKey } = state
    for (const { id, namespace, metadata, values } of vectors) {
      const key = known.get(id)
      version += 1
      const list = dialect.floats.bind(values)
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
    await setState(tx, tables, index, { ...state, version, lastKey, size })
    return ids
  }

  async function remove(tx: Transaction, index: StoredIndex, ids: readonly string[]): Promise<readonly string[]> {
    const state = await lockState(tx, tables, index)
    const known = await findKeys(tx, index, ids)
    if (known.size === 0) return []
    let { version } = state
    for (const key of known.values())
      tx.send(
        sql`UPDATE ${index.vectors} SET version = ${++version}, id = NULL, namespace = '', metadata = NULL,
          floats = NULL WHERE key = ${key}`,
      )
    const forgotten = (await trim(tx, index, version)) ?? state.forgotten
    await setState(tx, tables, index, { ...state, version, forgotten, size: state.size - known.size })
    return ids.filter((id) => known.has(id))
  }

  const write = async (effect: Effect, work: (tx: Transaction) => Promise<readonly string[]>) => {
    const target = { database, namespace: vectorNamespace }
    return parseIds(await writeEffect(target, effect, async (tx) => formatIds(await work(tx))))
  }

  return {
    put: (index, vectors, options, effect) => write(effect, (tx) => put(tx, index, vectors, options)),
    remove: (index, ids, effect) => write(effect, (tx) => remove(tx, index, ids)),
  }
}

/** Ids are not empty and have no control characters. */
const formatIds = (ids: readonly string[]): string => ids.join('\n')
const parseIds = (text: string): readonly string[] => (text === '' ? [] : text.split('\n'))

/** A conflict that names every existing id. */
const taken = (ids: readonly string[], known: ReadonlyMap<string, number>) =>
  conflict(
    'A vector with this id exists',
    Object.fromEntries(
      ids.flatMap((id, at) => (known.has(id) ? [[`vectors[${at}].id`, { code: 'unique', message: 'is taken' }]] : [])),
    ),
  )
