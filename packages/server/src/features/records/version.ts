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

/**
 * The version of a write: microseconds since 1970 of the request, or the next number if the row has a later version.
 * `before` is the version of the row, locked by this transaction; 0 for an insert.
 */
export const nextVersion = (before: number, nowMs: number): number =>
  Math.max(before + 1, Math.min(nowMs * 1000, clockVersionMax))

/** Removes the version from a row that was selected with it. */
export function takeVersion(row: Record<string, unknown>): number {
  const version = Number(row[versionName])
  delete row[versionName]
  return version
}
