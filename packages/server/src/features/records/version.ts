/**
 * Row versions, for optimistic concurrency control (`If-Match`, hooks): a number that grows with every change of a row,
 * across the deletion of the row and the insertion of another with its id. Stored beside the record, never in it.
 * `docs/decisions` explains why it follows the clock.
 */
import { type SqlText, sql } from '../../engines/sql/sql-text.ts'
import { clockVersionMax } from '../../limits/writes.ts'

/** Name of the column. No declared field starts with an underscore. */
export const versionName = '_version'

export const versionColumn: SqlText = sql`"_version"`

/** The column in a table's definition. Rows from before the column have version 0. */
export const versionDefinition: SqlText = sql`${versionColumn} BIGINT NOT NULL DEFAULT 0`

/** A record and the version of its row. */
export interface VersionedRow {
  readonly row: Record<string, unknown>
  readonly version: number
}

/** Versions per millisecond. Those of inserts are multiples of it, all others are not. */
const perMillisecond = 1000

/** The version of an insert: microseconds since 1970 of the request. */
export const insertVersion = (nowMs: number): number => Math.min(nowMs * perMillisecond, clockVersionMax)

/**
 * The version of a modification or a removal: after that of the row, `before`, which this transaction has locked, and
 * after that of an insert of the same time.
 */
export function nextVersion(before: number, nowMs: number): number {
  const next = Math.max(before, insertVersion(nowMs)) + 1
  return isInsertVersion(next) ? next + 1 : next
}

/** By how much a migration that changes rows raises their versions: those of inserts stay such. */
export const migratedVersions = perMillisecond

/** Whether a row has not been modified since it was inserted, and has not continued the versions of a removed one. */
export const isInsertVersion = (version: number): boolean => version % perMillisecond === 0

/** Removes the version from a row that was selected with it. */
export function takeVersion(row: Record<string, unknown>): number {
  const stored = row[versionName]
  delete row[versionName]
  // PostgreSQL returns a text. The runtime cannot optimize `Number` of a number beyond 32 bits.
  return typeof stored === 'number' ? stored : Number(stored)
}
