/**
 * Tables of rooms. The row of a room is small and updated often, so snapshots and journals have tables of their own.
 * `store` and `ownership` read and write them.
 */
import { type PlatformStep, platformTable } from '../../engines/sql/platform-tables.ts'
import type { Database, Sql } from '../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../engines/sql/sql-text.ts'
import type { RoomKey } from './engine/ports.ts'

/** Configured namespaces cannot start with an underscore. */
export const roomsNamespace = '_rooms'

const rooms = platformTable(roomsNamespace, 'rooms')
const snapshots = platformTable(roomsNamespace, 'snapshots')
const journal = platformTable(roomsNamespace, 'journal')
const generations = platformTable(roomsNamespace, 'generations')

/** Migrations. Times are milliseconds since 1970. */
export const roomTableSteps: readonly PlatformStep[] = [
  ({ target, columnTypes }) => {
    const text = { text: columnTypes.text, values: [] }
    const key = sql`namespace ${text} NOT NULL, id ${text} NOT NULL`
    return [
      sql`CREATE TABLE ${target(rooms)} (${key}, node ${text}, fence BIGINT NOT NULL, version_bound BIGINT NOT NULL,
        metadata TEXT NOT NULL, wake_at BIGINT, saved_at BIGINT, expires_at BIGINT NOT NULL,
        PRIMARY KEY (namespace, id))`,
      sql`CREATE INDEX rooms_wake ON ${target(rooms)} (wake_at)`,
      sql`CREATE INDEX rooms_expire ON ${target(rooms)} (expires_at)`,
      sql`CREATE TABLE ${target(snapshots)} (${key}, snapshot TEXT NOT NULL, PRIMARY KEY (namespace, id))`,
      sql`CREATE TABLE ${target(journal)} (${key}, fence BIGINT NOT NULL, seq BIGINT NOT NULL, entry TEXT NOT NULL,
        PRIMARY KEY (namespace, id, fence, seq))`,
      sql`CREATE TABLE ${target(generations)} (name ${text} PRIMARY KEY, generation BIGINT NOT NULL)`,
    ]
  },
]

/** The tables as statements reference them. */
export interface RoomTables {
  readonly database: Database
  readonly rooms: SqlText
  readonly snapshots: SqlText
  readonly journal: SqlText
  readonly generations: SqlText
}

export function createRoomTables(all: Sql): RoomTables {
  const database = all.database({ namespace: roomsNamespace, instanceId: null })
  const { target } = database.dialect
  return {
    database,
    rooms: target(rooms),
    snapshots: target(snapshots),
    journal: target(journal),
    generations: target(generations),
  }
}

/** The condition for the rows of one room. */
export const ofRoom = ({ namespace, id }: RoomKey): SqlText => sql`namespace = ${namespace} AND id = ${id}`
