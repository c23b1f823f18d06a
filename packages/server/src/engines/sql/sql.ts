/**
 * The port to relational storage: databases that are read at once and written in all-or-nothing turns. Text comes from
 * `sql-text`, what differs between engines in text from `dialect`; adapters (`sqlite`) own connections and durability.
 */
import type { Circuit } from './circuit.ts'
import type { Dialect } from './dialect.ts'
import type { PageQuery, PageRows } from './page-query.ts'
import type { SqlText } from './sql-text.ts'

export type SqlRow = Record<string, unknown>

export interface Reader {
  /** Rows in the statement's order, each with its columns as keys. */
  all<Row = SqlRow>(query: SqlText): Promise<Row[]>
}

export interface Transaction extends Reader {
  /** Runs a writing statement; gives the number of rows it changed. Throws `EngineError` `unique`. */
  run(query: SqlText): Promise<number>
  /**
   * Runs a writing statement, in its order, whose answer nobody waits for: where the database is elsewhere, that is a
   * way there and back saved. Should it fail, the whole write does.
   */
  send(query: SqlText): void
  /**
   * Takes a transaction-scoped advisory lock on each key and holds it until the transaction ends. All keys of one call
   * are locked in one fixed order, whatever the order of the arguments, so two calls cannot deadlock; pass all keys of
   * a transaction in one call, as early as possible: where another write of this process has a key, the work is rolled
   * back and runs again once the keys are free. Without keys, nothing is locked. A no-op where the engine runs one
   * transaction at a time.
   */
  lock(...keys: readonly string[]): Promise<void>
  /**
   * Called in the same turn as the commit, before any later read can see its rows. Never called for a rolled-back
   * write.
   */
  afterCommit(hook: () => void): void
}

export interface Database extends Reader {
  readonly dialect: Dialect
  /**
   * As `all`. `onRead` is called in the same turn of the event loop in which the rows are read, where this process does
   * all writing and reads them itself: no later commit is visible then. A read that may be slow names the `caller` it
   * is for (`callerKey`): callers share threads fairly.
   */
  all<Row = SqlRow>(query: SqlText, onRead?: (rows: Row[]) => void, caller?: string): Promise<Row[]>
  /**
   * A page of rows of any size, or null where the page has more bytes, or takes longer, than may be in one step:
   * `readLargePage` reads it then.
   */
  readPage<Row = SqlRow>(query: PageQuery): Promise<PageRows<Row> | null>
  /**
   * A page of rows of any size without blocking the event loop. It ends before the row that would exceed `bytesMax`,
   * but never before the first.
   */
  readLargePage<Row = SqlRow>(query: PageQuery, bytesMax: number): Promise<PageRows<Row>>
  /**
   * Runs `work` all or nothing, and resolves once its effects are on disk. A throw undoes all of it. Rows read with the
   * dialect's `forUpdate` stay as they are until the end. `work` awaits nothing but its transaction and the next slice
   * of the event loop, has no other effects, and may run more than once. Throws `EngineError` `busy` or `unavailable`
   * when nothing could be acknowledged.
   */
  write<T>(work: (tx: Transaction) => Promise<T>, options?: WriteOptions): Promise<T>
  /**
   * Resolves once everything committed before the call is on disk: what was read may be ahead of that by a moment.
   * Rejects with `EngineError` `unavailable` when the disk refuses.
   */
  synced(): Promise<void>
}

export interface WriteOptions {
  /** False: an instance that was never written is not created for this write, whose effects are then lost. */
  readonly creates?: boolean
  /**
   * The table the write is about, by which a shared engine divides its connections: a locked table stops itself and no
   * other. Without it, the writes of a namespace share one part.
   */
  readonly table?: string
  /**
   * True for changes of tables: they wait for locks without a bound, and may take as long as an index over many rows
   * takes.
   */
  readonly isMigration?: boolean
  /**
   * Awaited before an instance that was never written is created for this write; what it throws leaves the instance
   * uncreated. Never called where instances share tables, since nothing is created there.
   */
  readonly beforeCreate?: () => void | Promise<void>
}

/** Which database: a static namespace, or one instance of a dynamic one. */
export interface DatabaseAddress {
  readonly namespace: string
  readonly instanceId: string | null
}

export interface Sql {
  /**
   * The database at an address. An instance that was never written reads as empty and is created by its first write
   * that changes something.
   */
  database(address: DatabaseAddress): Database
  /**
   * Whether each instance is a database of its own, made by its first write; otherwise all of a namespace share tables.
   */
  readonly keepsInstancesApart: boolean
  /**
   * Has the writes to all databases of static namespaces wait, once those under way are committed, until the function
   * it gives is called; meanwhile no other hold may be asked for. Null where others write as well.
   */
  readonly pauseWrites: (() => Promise<() => void>) | null
  /** Names of the namespaces that hold data, those of the platform included, in no order. */
  namespaces(): Promise<readonly string[]>
  /**
   * Names the storage: another name after a restore or a fail-over, as far as the engine can recognize one. Rejects
   * with `EngineError`.
   */
  origin(): Promise<string>
  /** Has every instance prepared anew before its next use: what instances should look like has changed. */
  prepareAgain(): void
  /**
   * Brings what quiet databases have in their logs into their files, where the engine keeps both here; to be called
   * now and then. Never rejects.
   */
  checkpointIdle(): Promise<void>
  /** What refuses work while the engine is away; null where the engine is in this process. */
  readonly circuit: Circuit | null
  /**
   * Why writes cannot be acknowledged, in a sentence for an operator; null while they can. Where a write has failed, it
   * is tried with one of its own. Never rejects, and takes at most a few seconds.
   */
  findFault(): Promise<string | null>
  /** Finishes what is queued and lets go of every handle. */
  close(): Promise<void>
}
