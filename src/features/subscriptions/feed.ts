/**
 * What subscriptions need of the records they watch: the words of the two, so that neither feature has to know the
 * other. `app` hands in what `features/records` has.
 */
import type { Caller } from '../../access/caller.ts'
import type { Permissions } from '../../access/check.ts'
import type { Database, DatabaseAddress } from '../../engines/sql.ts'
import type { TableView } from '../../query/filter.ts'
import type { Table } from '../../query/table.ts'
import type { SqlBackEnd } from '../../query/to-sql.ts'

/** See `features/records/feed-reader`. */
export interface Place {
  readonly from: string
  readonly to: string
  readonly seq: number
  readonly atMs: number
}

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
}

export interface Following {
  between<T>(task: (place: Place) => T | Promise<T>): Promise<T>
  missed(since: Place, end: Place): Promise<readonly Change[] | null>
  stop(): void
}

export interface Feed {
  follow(address: DatabaseAddress, onChanges: (changes: readonly Change[]) => void | Promise<void>): Promise<Following>
  /** The log a database's changes are in. */
  logOf(address: DatabaseAddress): DatabaseAddress
}

/** One caller's way to a table. */
export interface TableCall {
  readonly table: Table
  readonly view: TableView
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
