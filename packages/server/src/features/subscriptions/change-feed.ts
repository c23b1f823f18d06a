/**
 * The port of the change feed that subscriptions follow, so that this feature does not depend on `features/records`,
 * which implements it. `app` connects the two.
 */
import type { Caller } from '../../access/caller.ts'
import type { Permissions } from '../../access/check.ts'
import type { Database, DatabaseAddress } from '../../engines/sql/sql.ts'
import type { SqlText } from '../../engines/sql/sql-text.ts'
import type { TableView } from '../../query/filter.ts'
import type { Table } from '../../query/table.ts'
import type { SqlBackEnd } from '../../query/to-sql.ts'

/** See `features/records/changes/change-log-reader`. */
export interface LogPosition {
  readonly from: string
  readonly to: string
  readonly seq: number
  readonly atMs: number
  readonly mark: { readonly seq: number; readonly atMs: number; readonly hash: string } | null
}

export const isSamePosition = (one: LogPosition, other: LogPosition): boolean =>
  one.from === other.from && one.to === other.to && one.seq === other.seq

export type Row = Readonly<Record<string, unknown>>

/** The change of one row by one write. */
export interface Change {
  readonly instanceId: string | null
  readonly table: string
  readonly id: string
  readonly requestId: string
  readonly atMs: number
  /** The version of the row after the change; for a removal greater than that of the row. */
  readonly version: number
  readonly position: LogPosition
  /** Complete records, hidden fields included; null where there was or is none. */
  readonly before: Row | null
  readonly after: Row | null
  readonly afterText: string | null
  /** Characters of the change in memory. */
  readonly size: number
}

/** All changes of a log between two positions. */
export interface Span {
  readonly from: LogPosition
  readonly to: LogPosition
  readonly changes: readonly Change[]
}

/** See `features/records/changes/log-follower`. */
export interface LogTail {
  readonly history: string
  refreshHistory(): Promise<string>
  atPosition<T>(task: (position: LogPosition) => T | Promise<T>): Promise<T>
  isReachableFrom(since: LogPosition, end: LogPosition): Promise<boolean>
  changesBetween(
    since: LogPosition,
    end: LogPosition,
  ): Promise<{ readonly changes: readonly Change[]; readonly next: LogPosition } | null>
  changesSince(
    position: LogPosition,
    tables: readonly string[],
  ): Promise<{ readonly changes: readonly Change[]; readonly end: LogPosition } | null>
  hasChangedSince(position: LogPosition, tables: readonly string[]): SqlText
  stop(): void
}

export interface Feed {
  follow(address: DatabaseAddress, onChanges: (span: Span) => void | Promise<void>): Promise<LogTail>
  /** The log a database's changes are in. */
  logOf(address: DatabaseAddress): DatabaseAddress
}

/** Access of one caller to a table. */
export interface TableCall {
  readonly table: Table
  readonly view: TableView
  readonly rows: {
    /** The table in `FROM`. */
    readonly from: SqlText
    columns(showsHidden: boolean): SqlText
    /** The column of the row's version. */
    readonly version: SqlText
    /** Converts a row that was selected with its version. */
    versionedFromSql(row: Record<string, unknown>): { readonly row: Row; readonly version: number }
  }
  readonly backEnd: SqlBackEnd
  readonly database: Database
  readonly address: DatabaseAddress
  readonly permissions: Permissions
}

/** Throws 404 for what is not declared, 400 for a malformed instance id, 401/403 where the namespace's rule denies. */
export type Resolve = (
  path: { namespace: string; instanceId: string | null; tableName: string },
  caller: Caller,
) => TableCall | Promise<TableCall>
