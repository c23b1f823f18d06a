/** How the engines' SQL differs, as data and small functions. Everything else about SQL is written once. */
import type { SqlScalar, SqlText } from './sql-text.ts'

/** How a declared field type is stored. */
export type StoredType = 'text' | 'number' | 'boolean' | 'json'

/** A table by where it lives. */
export interface TableRef {
  readonly namespace: string
  readonly name: string
  /** Whether its rows belong to instances of a dynamic namespace. */
  readonly perInstance: boolean
}

export type SearchWord = { readonly text: string; readonly folded: string; readonly isPrefix: boolean }

/** A column the engine adds to a table of its own accord, and what is written to it. */
export interface OwnColumn {
  readonly column: SqlText
  readonly value: SqlText
}

/** Where a row's search words are kept by an engine that does not cut words itself. */
export interface SearchColumn {
  readonly column: SqlText
  /** What is stored for words in their order. */
  readonly textOf: (words: readonly string[]) => string
  /** That text as a value to be written. */
  readonly bind: (text: string) => SqlText
}

/** A column of an insert of many rows. */
export interface ManyColumn {
  readonly column: SqlText
  readonly type: StoredType | 'integer' | 'words'
}

/** How lists of 32-bit floats are stored. */
export interface FloatLists {
  readonly columnType: string
  /** A list as a value to be written. */
  readonly bind: (values: Float32Array) => SqlText
  /** The column in a SELECT, as `toBytes` takes it. */
  readonly select: (column: SqlText) => SqlText
  /** What was stored, as little-endian floats. */
  readonly toBytes: (selected: unknown) => Uint8Array
}

export interface Dialect {
  readonly columnTypes: Readonly<Record<StoredType, string>>
  /** The table in `FROM`, restricted to the rows of the database that is asked, under an alias. */
  readonly from: (table: TableRef, alias: SqlText) => SqlText
  /** The table as the target of a writing statement; the rows must be restricted with `own`. */
  readonly target: (table: TableRef) => SqlText
  /** The column that says whose a row is, where several databases share a table. */
  readonly own: (table: TableRef) => OwnColumn | null
  /** Runs before the first table of a namespace is made, within the transaction that makes it. */
  readonly prepareNamespace: (namespace: string) => readonly SqlText[]
  /** Columns and constraints that begin every declared table's definition. */
  readonly tableHead: (table: TableRef) => readonly SqlText[]
  /** Definition of the columns that number the changes of a log and say when others may rely on them. */
  readonly logHead: readonly SqlText[]
  /**
   * Ends the definition of a table of short rows with a primary key, which are then kept in its order and nowhere else.
   */
  readonly clustered: SqlText
  /** Statements that make the log quick to follow. */
  readonly indexLog: (log: TableRef) => readonly SqlText[]
  /** How a reader of a log tells what it has seen. */
  readonly logView: LogView
  /** How a reader follows the log where other processes write too; null where this process does all writing. */
  readonly follow: Follow | null
  /** The definition of an index's column, in the order of `ascending`; the id's needs none. */
  readonly indexColumn: (column: SqlText) => SqlText
  /** Name of an index in statements other than its creation. */
  readonly indexName: (table: TableRef, name: string) => SqlText
  /** The row's own key in a declared table, where reading by it is quicker than by the id; else null. */
  readonly rowKey: SqlText | null
  /** Booleans as this engine binds and returns them. */
  readonly fromBoolean: (value: boolean) => SqlScalar
  readonly toBoolean: (stored: unknown) => boolean
  /** Makes other transactions that read the row to change it wait; goes at the end of a SELECT. */
  readonly forUpdate: SqlText
  /** Makes other transactions that read the row to change it wait, but none that refer to it as well; in its place. */
  readonly forReference: SqlText
  /**
   * Makes the statement that inserts any number of rows, given each column's values in order of the rows; null where a
   * statement for each row is as quick.
   */
  readonly insertMany:
    | ((table: TableRef, columns: readonly ManyColumn[]) => (values: readonly (readonly SqlScalar[])[]) => SqlText)
    | null
  /** `ORDER BY` term with nulls first ascending and last descending. */
  readonly ascending: (column: SqlText) => SqlText
  readonly descending: (column: SqlText) => SqlText
  /** Case-sensitive substring. */
  readonly contains: (column: SqlText, value: string) => SqlText
  /** Membership in a list sent as one parameter, so that its length does not change the statement. */
  readonly inList: (column: SqlText, values: readonly (string | number | boolean)[], type: StoredType) => SqlText
  /**
   * A JSON column (name null) or a member of its top-level object as a value of one JSON type; NULL when it is of
   * another.
   */
  readonly memberAs: (column: SqlText, name: string | null, type: 'string' | 'number' | 'boolean') => SqlText
  /** A member of a JSON column's top-level object as JSON text; NULL where it is missing. */
  readonly memberJson: (column: SqlText, name: string) => SqlText
  /** Whether the member is missing or null. */
  readonly memberIsNull: (column: SqlText, name: string) => SqlText
  /**
   * How a member orders, as three values never null: 0 null, 1 number or boolean, 2 anything else; the number; the
   * text.
   */
  readonly memberOrder: (column: SqlText, name: string) => readonly [SqlText, SqlText, SqlText]
  /** The JSON column (or its member of that name) is an array with an element equal to the value, types alike. */
  readonly arrayHas: (column: SqlText, name: string | null, value: string | number | boolean) => SqlText
  /** A table's full-text index and what a search for words (ANDed) says about it. */
  readonly searchIndex: (table: TableRef, words: readonly SearchWord[]) => SearchIndex
  /** Statements that create the index and, where the engine can, keep it by triggers. */
  readonly createSearch: (table: TableRef, fields: readonly string[]) => readonly SqlText[]
  readonly dropSearch: (table: TableRef) => readonly SqlText[]
  /** Null where the engine cuts words itself. */
  readonly searchColumn: SearchColumn | null
  readonly floats: FloatLists
  /**
   * Asks for one row with `available` and `installed`, the versions of an extension (null for none), or for no row;
   * null where there are no extensions.
   */
  readonly findExtension: ((name: string) => SqlText) | null
}

/**
 * What a statement sees of a log, kept as a text: a snapshot. Whatever is committed later, in whatever order, is beyond
 * it, so a reader that goes from one snapshot to the next misses nothing.
 */
export interface LogView {
  /** What this statement sees of the log. */
  readonly snapshot: (log: TableRef) => SqlText
  /** Whether a row of the log is in a snapshot. */
  readonly within: (snapshot: string) => SqlText
  readonly beyond: (snapshot: string) => SqlText
  /** Whether a snapshot cannot be from before another: the database has been put back since it was taken. */
  readonly isAhead: (snapshot: string, of: string) => boolean
  /** A row's number in an order in which, beyond a snapshot, there is none before the snapshot's first unknown one. */
  readonly position: SqlText
  /** Whether a row at a position may be beyond a snapshot; true where that is not certain. */
  readonly isBeyond: (position: number, snapshot: string) => boolean
}

export interface Follow {
  /**
   * One row with `snapshot`, `changes` and `fits`: of one table's log rows that this statement sees and the given
   * snapshot did not, in whatever order they were committed, a JSON array of `[before, after]`; null for none. At most
   * `limit`; where those have more than `bytesMax` bytes, `fits` is false and they stay in the database.
   */
  readonly changesSince: (
    log: SqlText,
    table: string,
    snapshot: string,
    bounds: { limit: number; bytesMax: number },
  ) => SqlText
  /**
   * The same without `snapshot`, of the rows that one of two snapshots holds and the other does not, each with whether
   * it is `to` that does: a JSON array of `[before, after, isLater]`.
   */
  readonly changesBetween: (
    log: SqlText,
    table: string,
    from: string,
    to: string,
    bounds: { limit: number; bytesMax: number },
  ) => SqlText
}

export interface SearchIndex {
  /** What joins the index to its table in `FROM`; possibly nothing. */
  readonly joins: SqlText
  readonly matches: SqlText
  /** Ascending: best first. */
  readonly rank: SqlText
  readonly frequency: WordFrequency | null
}

/**
 * How often words occur, for an engine that searches in this process: ranking looks at every occurrence of every word
 * before it gives a row, so a search for frequent ones must not run on the event loop.
 */
export interface WordFrequency {
  /** What `query` reads, by name, and the statement that makes it for the lifetime of a connection. */
  readonly source: string
  readonly create: SqlText
  /** Gives a row where one of the words is frequent; takes as long for any words. */
  readonly query: SqlText
}
