/**
 * Persistent rooms in SQL: a snapshot, and a journal of later changes. Every write carries the fence of its owner and
 * has no effect if a higher one has been seen. `ownership` determines the owner; the engine defines the texts.
 */
import { type SqlText, sql } from '../../engines/sql/sql-text.ts'
import type { RoomKey, RoomSave, RoomStore, SavedRoom } from './engine/ports.ts'
import { ofRoom, type RoomTables } from './migrations.ts'

/** The data of a room that can be read without loading it. */
export interface StoredRoom {
  /** JSON of an object. */
  readonly metadata: string
  /** The node that is recorded as its owner. */
  readonly node: string | null
}

export interface SqlRoomStore extends RoomStore {
  /** By room id. Rooms that have never existed are missing. */
  findStored(namespace: string, ids: readonly string[]): Promise<ReadonlyMap<string, StoredRoom>>
  /** Nodes that are recorded as owners of rooms. */
  findNodes(): Promise<readonly string[]>
}

interface KeyRow {
  readonly namespace: string
  readonly id: string
}

/** `declared` returns the configured namespaces. Due timers of other namespaces are ignored. */
export function createRoomStore(
  { database, rooms, snapshots, journal }: RoomTables,
  declared: () => Iterable<string>,
): SqlRoomStore {
  const { dialect } = database

  /** A condition that holds while the owner with this fence is the latest one. */
  const ownedBy = (key: RoomKey, fence: number): SqlText =>
    sql`EXISTS (SELECT 1 FROM ${rooms} WHERE ${ofRoom(key)} AND fence = ${fence})`

  const findKeys = async (condition: SqlText, order: SqlText, limit: number): Promise<RoomKey[]> => {
    const found = await database.all<KeyRow>(
      sql`SELECT namespace, id FROM ${rooms} WHERE ${condition} ORDER BY ${order} LIMIT ${limit}`,
    )
    return found.map(({ namespace, id }) => ({ namespace, id }))
  }

  const updateOf = ({ key, fence, versionBound, metadata, wakeAtMs, savedAtMs, expiresAtMs }: RoomSave): SqlText =>
    sql`UPDATE ${rooms} SET fence = ${fence}, version_bound = ${versionBound}, metadata = ${metadata},
        wake_at = ${wakeAtMs}, saved_at = ${savedAtMs}, expires_at = ${expiresAtMs}
      WHERE ${ofRoom(key)} AND fence <= ${fence}`

  /** Statements that follow the update of a room's row; without effect if that was refused. */
  function dataOf({ key, fence, snapshot, entry, seq }: RoomSave): SqlText[] {
    const { namespace, id } = key
    if (snapshot !== null)
      return [
        sql`DELETE FROM ${journal} WHERE ${ofRoom(key)} AND ${ownedBy(key, fence)}`,
        sql`INSERT INTO ${snapshots} (namespace, id, snapshot)
          SELECT namespace, id, ${snapshot} FROM ${rooms} WHERE ${ofRoom(key)} AND fence = ${fence}
          ON CONFLICT (namespace, id) DO UPDATE SET snapshot = excluded.snapshot`,
      ]
    if (entry === null) return []
    return [
      sql`INSERT INTO ${journal} (namespace, id, fence, seq, entry)
        SELECT ${namespace}, ${id}, CAST(${fence} AS BIGINT), CAST(${seq} AS BIGINT), ${entry}
        WHERE ${ownedBy(key, fence)}
        ON CONFLICT (namespace, id, fence, seq) DO UPDATE SET entry = excluded.entry`,
    ]
  }

  return {
    async load(key, fence, versions, expiresAtMs) {
      const { namespace, id } = key
      return database.write(async (tx): Promise<SavedRoom | null> => {
        const [before] = await tx.all<{ version_bound: unknown; expires_at: unknown }>(
          sql`SELECT version_bound, expires_at FROM ${rooms} WHERE ${ofRoom(key)}${dialect.forUpdate}`,
        )
        const versionBound = Number(before?.version_bound ?? 0)
        // A row without versions was claimed, but never loaded.
        const expires = versionBound === 0 ? expiresAtMs : Number(before?.expires_at)
        const taken = await tx.run(
          sql`INSERT INTO ${rooms} (namespace, id, fence, version_bound, metadata, expires_at)
            VALUES (${namespace}, ${id}, ${fence}, ${versionBound + versions}, ${'{}'}, ${expires})
            ON CONFLICT (namespace, id) DO UPDATE
              SET fence = excluded.fence, version_bound = excluded.version_bound, expires_at = excluded.expires_at
              WHERE ${rooms}.fence <= excluded.fence`,
        )
        if (taken === 0) return null
        const [snapshot] = await tx.all<{ snapshot: string }>(
          sql`SELECT snapshot FROM ${snapshots} WHERE ${ofRoom(key)}`,
        )
        const entries = await tx.all<{ entry: string }>(
          sql`SELECT entry FROM ${journal} WHERE ${ofRoom(key)} ORDER BY fence, seq`,
        )
        return {
          snapshot: snapshot?.snapshot ?? null,
          journal: entries.map(({ entry }) => entry),
          versionBound,
          expiresAtMs: expires,
        }
      })
    },

    async save(saves) {
      return database.write(async (tx) => {
        // Sent together, so that a remote database costs one round trip.
        const updated = saves.map((save) => tx.run(updateOf(save)))
        for (const save of saves) for (const statement of dataOf(save)) tx.send(statement)
        const counts = await Promise.all(updated)
        return saves.filter((_, at) => counts[at] === 0).map(({ key }) => key)
      })
    },

    async remove(key, fence) {
      await database.write(async (tx) => {
        const removed = await tx.run(sql`DELETE FROM ${rooms} WHERE ${ofRoom(key)} AND fence <= ${fence}`)
        if (removed === 0) return
        await tx.run(sql`DELETE FROM ${snapshots} WHERE ${ofRoom(key)}`)
        await tx.run(sql`DELETE FROM ${journal} WHERE ${ofRoom(key)}`)
      })
    },

    findDue(nowMs, limit) {
      const isDeclared = dialect.inList(sql`namespace`, [...declared()], 'text')
      return findKeys(sql`wake_at <= ${nowMs} AND ${isDeclared}`, sql`wake_at`, limit)
    },
    findExpired: (nowMs, limit) => findKeys(sql`expires_at <= ${nowMs}`, sql`expires_at`, limit),

    async findStored(namespace, ids) {
      const found = await database.all<StoredRoom & { readonly id: string }>(
        sql`SELECT id, metadata, node FROM ${rooms}
          WHERE namespace = ${namespace} AND ${dialect.inList(sql`id`, ids, 'text')}`,
      )
      return new Map(found.map(({ id, metadata, node }) => [id, { metadata, node }]))
    },
    async findNodes() {
      const found = await database.all<{ node: string }>(sql`SELECT DISTINCT node FROM ${rooms} WHERE node IS NOT NULL`)
      return found.map(({ node }) => node)
    },
  }
}
