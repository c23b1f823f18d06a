/**
 * Port: relational storage. Databases are read concurrently and written in atomic transactions. SQL comes from
 * `sql-text`, differences between engines from `dialect`; adapters own connections and durability.
 */
import type { Circuit } from './circuit.ts'
import type { Dialect } from './dialect.ts'
import type { EncodedRow } from './encoded-rows.ts'
import type { InstancePage, InstanceSearch } from './instance-search.ts'
import type { PageQuery, PageRows } from './page-query.ts'
import type { QueryPlan } from './query-plan.ts'
import type { ScanOptions } from './scan-queue.ts'
import type { SqlText } from './sql-text.ts'

export type SqlRow = Record<string, unknown>

export interface Reader {
  /** Rows in the statement's order, as objects keyed by column. */
  all<Row = SqlRow>(query: SqlText): Promise<Row[]>
}

export type RowLock = 'change' | 'removal'

/** A statement that appends to a log. */
export interface Append extends SqlText {
  /**
   * Takes over what the next one appends; returns false where that has to have a statement of its own. With it, the
   * statement may run as late as before the commit, without it, it runs at once.
   */
  readonly takeOver?: (next: Append) => boolean
}

export interface Transaction extends Reader {
  /** Runs a statement that writes; returns the number of rows changed. Throws `EngineError` `unique`. */
  run(query: SqlText): Promise<number>
  /**
   * The row that a query selects by its id, locked until the transaction ends: against every other write, or only
   * against its removal. Null if there is none.
   */
  lockRow<Row = SqlRow>(query: SqlText, against: RowLock): Promise<Row | null>
  /**
   * Sends a statement that writes, in order, without waiting for its result: saves a round trip to a remote database.
   * If it fails, the transaction fails, with what `explain` makes of the error; an engine that knows the result at once
   * throws that.
   */
  send(query: SqlText, explain?: (error: unknown) => unknown): void
  /**
   * Sends a statement that appends to a log of this database. All that append to a log are sent so, which keeps them in
   * order: an engine that commits several transactions together runs one statement for what they append in succession.
   */
  append(statement: Append): void
  /**
   * Takes a transaction-scoped advisory lock on each key and holds it until the transaction ends. All keys of one call
   * are locked in one fixed order, whatever the order of the arguments, so two calls cannot deadlock; pass all keys of
   * a transaction in one call, as early as possible: where another write of this process has a key, the work is rolled
   * back and runs again once the keys are free. Without keys, nothing is locked. A no-op where the engine runs one
   * transaction at a time.
   */
  lock(...keys: readonly string[]): Promise<void>
  /** Runs `hook` in the tick of the commit, before any later read can see the rows. Not called after a rollback. */
  afterCommit(hook: () => void): void
}

export interface Database extends Reader {
  readonly dialect: Dialect
  /**
   * Like `Reader.all`. `onRead` runs in the event-loop tick that reads the rows, where this process is the only writer
   * and reads on its main thread: no later commit is visible then. A read that may be slow names its `caller`
   * (`callerKey`): reader threads are shared fairly between callers.
   */
  all<Row = SqlRow>(query: SqlText, onRead?: (rows: Row[]) => void, caller?: string): Promise<Row[]>
  /**
   * A page of rows, or null if it exceeds the bytes or the time of one event-loop step; read it with `readLargePage`
   * then.
   */
  readPage<Row = SqlRow>(query: PageQuery): Promise<PageRows<Row> | null>
  /** The same for a response that consists of the columns of its rows; null where rows are objects from the start. */
  readonly readEncodedPage: ((query: PageQuery) => Promise<PageRows<EncodedRow> | null>) | null
  /**
   * A page of rows of any size, read without blocking the event loop. It ends before the row that would exceed
   * `bytesMax`, but has at least one row.
   */
  readLargePage<Row = SqlRow>(query: PageQuery, bytesMax: number): Promise<PageRows<Row>>
  /** The plan of a query, which may run once more for it. Takes as long as the query. */
  explain(query: SqlText): Promise<QueryPlan>
  /**
   * Rows of a statement that may visit every row of a table: it runs outside of the event loop, and is ended at its
   * time limit. The rows must be few and small. Throws `EngineError`: `timeout`, `range`, and `crowded` or `busy` where
   * too many scans wait.
   */
  scan<Row = SqlRow>(query: SqlText, options: ScanOptions): Promise<Row[]>
  /**
   * Runs `work` in a transaction and resolves once the commit is durable. A throw rolls it back. Rows read with the
   * dialect's `forUpdate` stay locked until the end. `work` awaits only its transaction and event-loop slices, has no
   * other side effects, and may run more than once. Throws `EngineError` `busy` or `unavailable` when nothing could be
   * acknowledged.
   */
  write<T>(work: (tx: Transaction) => Promise<T>, options?: WriteOptions): Promise<T>
  /**
   * Builds indexes of large tables ahead of the migration that creates them, where that would block the event loop:
   * reads are served and writes wait. Statements that fail are left to the migration. Does nothing where none blocks.
   */
  buildIndexes(statements: readonly SqlText[]): Promise<void>
  /**
   * Resolves once everything committed before the call is durable: reads may see a commit shortly before that. Rejects
   * with `EngineError` `unavailable` when the disk fails.
   */
  synced(): Promise<void>
}

export interface WriteOptions {
  /** False: a write to an instance without a database does not create one; its effects are discarded. */
  readonly creates?: boolean
  /**
   * The table the write concerns. A shared engine partitions its connections by it, so a locked table blocks only its
   * own writes. Without it, the writes of a namespace share one partition.
   */
  readonly table?: string | undefined
  /**
   * The id of the only row of `table` that the work locks or writes, or null if it inserts rows with new ids. Such a
   * write may share a transaction with writes of other rows. Undefined: it has one of its own.
   */
  readonly row?: string | null | undefined
  /**
   * Whose write it is (`callerKey`). Where the engine runs one write at a time, those that wait are served round robin
   * over callers, those of one caller in order; writes without a caller are those of the server. Throws `EngineError`
   * `crowded` where too many of the caller wait.
   */
  readonly caller?: string | undefined
  /**
   * True for schema changes: they wait for locks without limit and may take as long as building a large index takes.
   */
  readonly isMigration?: boolean
  /**
   * Awaited before this write creates an instance's database; if it throws, the instance is not created. Never called
   * where instances share tables, since nothing is created there.
   */
  readonly beforeCreate?: () => void | Promise<void>
}

/** Address of a database: a static namespace, or one instance of a dynamic one. */
export interface DatabaseAddress {
  readonly namespace: string
  readonly instanceId: string | null
}

export interface Sql {
  /**
   * The database at an address. An instance without a database reads as empty; its first effective write creates it.
   */
  database(address: DatabaseAddress): Database
  /** A page of the instances of a dynamic namespace that have data. Throws `EngineError` `busy` and `timeout`. */
  findInstances(search: InstanceSearch): Promise<InstancePage>
  /**
   * Whether each instance has a database of its own, created by its first write. Otherwise all instances of a namespace
   * share tables.
   */
  readonly keepsInstancesApart: boolean
  /**
   * Pauses writes to the databases of static namespaces: resolves, once transactions in flight have committed, with the
   * function that resumes them. No other pause may be requested meanwhile. Null where other processes write as well.
   */
  readonly pauseWrites: (() => Promise<() => void>) | null
  /** Names of the namespaces that have data, the platform's included, in no order. */
  namespaces(): Promise<readonly string[]>
  /**
   * Identifier of the storage's history; changes after a restore or a fail-over, as far as the engine can detect one.
   * Rejects with `EngineError`.
   */
  origin(): Promise<string>
  /**
   * Schedules the preparation of every instance before its next use; call it when the tables of instances have changed.
   */
  prepareAgain(): void
  /**
   * Checkpoints the write-ahead logs of idle databases into their files, where the engine has them locally. Call it
   * periodically. Never rejects.
   */
  checkpointIdle(): Promise<void>
  /** Circuit breaker of a remote engine; null where the engine is in this process. */
  readonly circuit: Circuit | null
  /**
   * Why writes cannot be acknowledged, as a sentence for an operator, or null. After a failed write it attempts a write
   * of its own. Never rejects; takes at most a few seconds.
   */
  findFault(): Promise<string | null>
  /** Finishes queued work and releases every handle. */
  close(): Promise<void>
}
