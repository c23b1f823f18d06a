/**
 * What subscriptions need of the records they watch: the words of the two, so that neither feature has to know the
 * other. `app` hands in what `features/records` has.
 */
import type { Caller } from '../../access/caller.ts'
import type { Permissions } from '../../access/check.ts'
import type { Database, DatabaseAddress } from '../../engines/sql/sql.ts'
import type { SqlText } from '../../engines/sql/sql-text.ts'
import type { TableView } from '../../query/filter.ts'
import type { Table } from '../../query/table.ts'
import type { SqlBackEnd } from '../../query/to-sql.ts'

/** See `features/records/feed-reader`. */
export interface Place {
  readonly from: string
  readonly to: string
  readonly seq: number
  readonly atMs: number
  readonly mark: { readonly seq: number; readonly atMs: number; readonly hash: string } | null
}

/** Whether two places are the same. */
export const isSamePlace = (one: Place, other: Place): boolean =>
  one.from === other.from && one.to === other.to && one.seq === other.seq

export type Row = Readonly<Record<string, unknown>>

/** One row's way through one write. */
export interface Change {
  readonly instanceId: string | null
  readonly table: string
  readonly id: string
  readonly requestId: string
  readonly atMs: number
  readonly place: Place
  /** Whole records, hidden fields included; null where there was or is none. */
  readonly before: Row | null
  readonly after: Row | null
  readonly afterText: string | null
  /** Characters of what is held of it. */
  readonly size: number
}

/** All changes of a log between two places. */
export interface Span {
  readonly from: Place
  readonly to: Place
  readonly changes: readonly Change[]
}

/** See `features/records/feed`. */
export interface Following {
  readonly history: string
  look(): Promise<string>
  between<T>(task: (place: Place) => T | Promise<T>): Promise<T>
  reaches(since: Place, end: Place): Promise<boolean>
  read(since: Place, end: Place): Promise<{ readonly changes: readonly Change[]; readonly next: Place } | null>
  since(
    place: Place,
    tables: readonly string[],
  ): Promise<{ readonly changes: readonly Change[]; readonly end: Place } | null>
  hasMoved(place: Place, tables: readonly string[]): SqlText
  stop(): void
}

export interface Feed {
  follow(address: DatabaseAddress, onChanges: (span: Span) => void | Promise<void>): Promise<Following>
  /** The log a database's changes are in. */
  logOf(address: DatabaseAddress): DatabaseAddress
}

/** One caller's way to a table. */
export interface TableCall {
  readonly table: Table
  readonly view: TableView
  readonly rows: {
    /** The table in `FROM`. */
    readonly from: SqlText
    columns(showsHidden: boolean): SqlText
    fromSql(row: Record<string, unknown>): Row
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
