/** SQL differences between engines, as data and small functions. All other SQL is engine independent. */
import type { StorageBounds, StoredTable } from '../table-storage/table-storage.ts'
import type { SqlScalar, SqlText } from './sql-text.ts'

/** How a declared field type is stored. */
export type StoredType = 'text' | 'number' | 'boolean' | 'json'

/** A table and its namespace. */
export interface TableRef {
  readonly namespace: string
  readonly name: string
  /** Whether the table belongs to the instances of a dynamic namespace. */
  readonly perInstance: boolean
}

export type SearchWord = { readonly text: string; readonly folded: string; readonly isPrefix: boolean }

/** A column the engine adds to a table, and the value written to it. */
export interface OwnColumn {
  readonly column: SqlText
  readonly value: SqlText
}

/** Storage of a row's search words, for an engine that does not tokenize text itself. */
export interface SearchColumn {
  readonly column: SqlText
  /** The stored form of the words, in order. */
  readonly textOf: (words: readonly string[]) => string
  /** The stored form as a bound value. */
  readonly bind: (text: string) => SqlText
}

/** A column of a bulk insert. */
export interface ManyColumn {
  readonly column: SqlText
  readonly type: StoredType | 'integer' | 'words'
  /** Whether all rows have one value, which is sent once. */
  readonly isShared?: boolean
}

/** The values of a column in row order, or the one of all rows. */
export type ManyValues = readonly SqlScalar[] | SqlScalar

/** Storage of lists of 32-bit floats. */
export interface FloatLists {
  readonly columnType: string
  /** A list as a bound value. */
  readonly bind: (values: Float32Array) => SqlText
  /** The column in a SELECT, as `toBytes` takes it. */
  readonly select: (column: SqlText) => SqlText
  /** The stored value as little-endian floats. */
  readonly toBytes: (selected: unknown) => Uint8Array
}

export type Period = 'hour' | 'day' | 'week' | 'month' | 'year'

/** Calendar arithmetic on stored datetimes, which are UTC text with milliseconds. */
export interface Calendar {
  /** An offset from UTC, as `local` takes it. */
  readonly shift: (seconds: number) => SqlText
  /**
   * The name of the period of a datetime in the years 1 to 9999, moved by the offset: `2026-01-31T13`, `2026-01-31`
   * (for a week its Monday), `2026-01` or `2026`.
   */
  readonly local: (datetime: SqlText, shift: SqlText, period: Period) => SqlText
}

export interface Dialect {
  readonly columnTypes: Readonly<Record<StoredType, string>>
  /** The table in `FROM`, restricted to the rows of the queried database, under an alias. */
  readonly from: (table: TableRef, alias: SqlText) => SqlText
  /** The table as the target of a write; the rows must be restricted with `own`. */
  readonly target: (table: TableRef) => SqlText
  /** The column that identifies the owning database, where several databases share a table. */
  readonly own: (table: TableRef) => OwnColumn | null
  /** Statements that run before the first table of a namespace is created, in the same transaction. */
  readonly prepareNamespace: (namespace: string) => readonly SqlText[]
  /** Columns and constraints at the start of every declared table's definition. */
  readonly tableHead: (table: TableRef) => readonly SqlText[]
  /** Query that returns a row if the stored table has the column. */
  readonly hasColumn: (table: TableRef, name: string) => SqlText
  /** Columns that number the changes of a log and determine their visibility to readers. */
  readonly logHead: readonly SqlText[]
  /** Suffix of a table definition for short rows with a primary key: the table is stored in key order (clustered). */
  readonly clustered: SqlText
  /** Statements that create the indexes for tailing the log. */
  readonly indexLog: (log: TableRef) => readonly SqlText[]
  /** Snapshots of a log, for its readers. */
  readonly logView: LogView
  /**
   * Whether the log of a database refers to the row of an insert instead of storing the record again. It has to be read
   * together with the rows then, which `Follow` does not.
   */
  readonly logRefersToRows: boolean
  /** Change queries for a log that other processes write to; null where this process is the only writer. */
  readonly follow: Follow | null
  /** An index column in the order of `ascending`; the id column needs none. */
  readonly indexColumn: (column: SqlText) => SqlText
  /** Whether an index may end with boolean fields: they take a byte, and a condition on them then reads no row. */
  readonly coversBooleans: boolean
  /** Selects the names of the indexes of a table as `name`. */
  readonly indexNames: (table: TableRef) => SqlText
  /** Name of an index in statements other than its creation. */
  readonly indexName: (table: TableRef, name: string) => SqlText
  /** The engine's row key in a declared table, where reading by it is faster than by id; else null. */
  readonly rowKey: SqlText | null
  /** Booleans as this engine binds and returns them. */
  readonly fromBoolean: (value: boolean) => SqlScalar
  readonly toBoolean: (stored: unknown) => boolean
  /** Row lock against concurrent updates; goes at the end of a SELECT. */
  readonly forUpdate: SqlText
  /** The same for the rows that no other transaction has locked; the others are left out. */
  readonly skipLocked: SqlText
  /** Row lock against concurrent updates that allows concurrent references (`FOR KEY SHARE`); same position. */
  readonly forReference: SqlText
  /**
   * Locks a table until the end of the transaction: against every write of other transactions, or (`keepsOut` false) as
   * a write does. Null where the engine runs one transaction at a time.
   */
  readonly lockTable: ((table: TableRef, keepsOut: boolean) => SqlText) | null
  /** Builds a bulk insert from the values of each column; null where one statement per row is as fast. */
  readonly insertMany:
    | ((table: TableRef, columns: readonly ManyColumn[]) => (values: readonly ManyValues[]) => SqlText)
    | null
  /** `ORDER BY` term with nulls first ascending and last descending. */
  readonly ascending: (column: SqlText) => SqlText
  readonly descending: (column: SqlText) => SqlText
  /** Case-sensitive substring. */
  readonly contains: (column: SqlText, value: string) => SqlText
  /** Membership in a list sent as one parameter, so the statement's text does not depend on its length. */
  readonly inList: (column: SqlText, values: readonly (string | number | boolean)[], type: StoredType) => SqlText
  /**
   * Selects the row keys of the first rows for each of several texts: `rowsOf` builds the rest of a SELECT from the
   * table, with its WHERE, ORDER BY and LIMIT, for the text of one. `key` is a column of the table under its alias.
   */
  readonly keysPerText: (rows: {
    readonly from: SqlText
    readonly key: SqlText
    readonly texts: readonly string[]
    readonly rowsOf: (text: SqlText) => SqlText
  }) => SqlText
  /** Aggregate: one JSON object as text, from the names and numbers of the rows; null or `{}` without rows. */
  readonly objectOf: (name: SqlText, value: SqlText) => SqlText
  /**
   * A JSON column (name null) or a member of its top-level object, as a value of one JSON type; NULL if it has another
   * type.
   */
  readonly memberAs: (column: SqlText, name: string | null, type: 'string' | 'number' | 'boolean') => SqlText
  /** A member of a JSON column's top-level object as JSON text; NULL where it is missing. */
  readonly memberJson: (column: SqlText, name: string) => SqlText
  /** Whether the member is missing or null. */
  readonly memberIsNull: (column: SqlText, name: string) => SqlText
  /**
   * Sort key of a member as three non-null values: its class (0 null, 1 number or boolean, 2 anything else), the
   * number, the text.
   */
  readonly memberOrder: (column: SqlText, name: string) => readonly [SqlText, SqlText, SqlText]
  /** Whether the JSON column (or its member `name`) is an array that contains the value, of the same type. */
  readonly arrayHas: (column: SqlText, name: string | null, value: string | number | boolean) => SqlText
  /** A table's full-text index and the query for the words (ANDed). */
  readonly searchIndex: (table: TableRef, words: readonly SearchWord[]) => SearchIndex
  /** Statements that create the index and, where the engine supports it, the triggers that maintain it. */
  readonly createSearch: (table: TableRef, fields: readonly string[]) => readonly SqlText[]
  readonly dropSearch: (table: TableRef) => readonly SqlText[]
  /** Null where the engine tokenizes text itself. */
  readonly searchColumn: SearchColumn | null
  /** The index of searches with a ranking, which is the same on every engine. */
  readonly termIndex: TermIndex
  /** What tables and indexes take on disk. */
  readonly tableStorage: TableStorage
  /**
   * Query for how often the engine has used each index of a namespace: rows with `name`, `uses`, and `sinceMs` since
   * when it counts. Null where it does not count.
   */
  readonly countedUses: ((namespace: string) => SqlText) | null
  readonly floats: FloatLists
  readonly calendar: Calendar
  /**
   * Query for the versions of an extension: one row with `available` and `installed` (null if absent), or no row. Null
   * where the engine has no extensions.
   */
  readonly findExtension: ((name: string) => SqlText) | null
}

/**
 * A position in a log: within the batch of the rows that are beyond `from` and within `to`, after number `seq`; between
 * two batches where both are the same.
 */
export interface BatchPosition {
  readonly from: string
  readonly to: string
  readonly seq: number
}

/**
 * A snapshot of a log, stored as text: the rows visible to one statement. Rows committed later, in any order, are
 * outside it, so a reader that moves from snapshot to snapshot misses nothing.
 */
export interface LogView {
  /** The snapshot of the current statement. */
  readonly snapshot: (log: TableRef) => SqlText
  /** Condition: a row of the log is in the snapshot. */
  readonly within: (snapshot: string) => SqlText
  readonly beyond: (snapshot: string) => SqlText
  /** Condition: a row is in the batch of a position, after it. */
  readonly rest: (position: BatchPosition) => SqlText
  /** Condition: a row is after a position. */
  readonly after: (position: BatchPosition) => SqlText
  /** Whether `snapshot` is later than `of`: the database was restored to an earlier state since it was taken. */
  readonly isAhead: (snapshot: string, of: string) => boolean
  /** A row's position. Rows outside a snapshot have positions at or after the snapshot's first unknown row. */
  readonly position: SqlText
  /** Whether a row at a position may be outside a snapshot; true if uncertain. */
  readonly isBeyond: (position: number, snapshot: string) => boolean
}

export interface Follow {
  /**
   * One row with `snapshot`, `changes` and `fits`. `changes` is a JSON array of `[before, after, position]`, or null
   * for none: the table's log rows that this statement sees and the given snapshot did not, in any commit order, at
   * most `limit`. If they exceed `bytesMax` bytes, `fits` is false and they are not sent.
   */
  readonly changesSince: (
    log: SqlText,
    table: string,
    snapshot: string,
    bounds: { limit: number; bytesMax: number },
  ) => SqlText
  /** Whether everything in a snapshot is in another. */
  readonly isWithin: (snapshot: string, other: string) => boolean
  /** Whether a log row at a position is in a snapshot. */
  readonly visibleIn: (snapshot: string) => (position: number) => boolean
}

/**
 * The index of the terms of a table (`engines/term-index`). The term table has `term`, `weight`, and `key`: the row key
 * of the record (`Dialect.rowKey`, or its id).
 */
export interface TermIndex {
  /** Creates the term table, the dictionary if searches correct typos, and the triggers; the column must exist. */
  readonly create: (table: TableRef, options: { readonly typos: boolean }) => readonly SqlText[]
  /** Drops them, whether they exist or not. Each statement starts with `DROP`. */
  readonly drop: (table: TableRef) => readonly SqlText[]
  /**
   * Selects `word` for words of the dictionary under any of the entries, by lookups in its index whatever the engine
   * knows of its contents. `from` is the dictionary as `"_known"`. A word may occur several times.
   */
  readonly wordsUnder: (from: SqlText, entries: readonly string[], limit: number) => SqlText
  /** The terms in a column as rows for `FROM`, and the columns of these rows. */
  readonly entries: (column: SqlText) => {
    readonly from: SqlText
    readonly term: SqlText
    readonly weight: SqlText
  }
}

/** What a table and its indexes take on disk (`engines/table-storage`). */
export interface TableStorage {
  /**
   * The statement, for `Database.scan`; it fails where there is no such table. In a dynamic namespace that shares its
   * tables: of all instances together.
   */
  readonly query: (table: TableRef, bounds: StorageBounds) => SqlText
  /** What its rows say. */
  readonly read: (rows: readonly Record<string, unknown>[], table: TableRef, bounds: StorageBounds) => StoredTable
}

export interface SearchIndex {
  /** Join of the index to its table in `FROM`; may be empty. */
  readonly joins: SqlText
  readonly matches: SqlText
  /** Ascending: best first. */
  readonly rank: SqlText
  readonly frequency: WordFrequency | null
}

/**
 * Word frequencies, for an engine that searches in this process. Ranking visits every occurrence of every word before
 * it returns a row, so a search for frequent words must not run on the event loop.
 */
export interface WordFrequency {
  /** The table that `query` reads, and the statement that creates it for the lifetime of a connection. */
  readonly source: string
  readonly create: SqlText
  /** Returns a row if one of the words is frequent; takes the same time for all words. */
  readonly query: SqlText
}
