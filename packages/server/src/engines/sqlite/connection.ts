/** One connection to one SQLite file: pragmas, a bounded cache of prepared statements, errors in the port's words. */
import { Database as BunDatabase, SQLiteError, type Statement } from 'bun:sqlite'
import { createLru } from '../../base/concurrency/lru.ts'
import {
  sqliteCacheKiB,
  sqliteInstanceCacheKiB,
  statementCacheEntriesMax,
  walCheckpointBytes,
  walInstanceCheckpointBytes,
} from '../../limits/sqlite.ts'
import { EngineError } from '../sql/error.ts'
import type { SqlRow } from '../sql/sql.ts'
import type { SqlText } from '../sql/sql-text.ts'

export interface ConnectionOptions {
  readonly readonly?: boolean
  /** Smaller page cache and log: one of many databases rather than the main one. */
  readonly small?: boolean
  /** Keeps what a sort needs beyond its cache of 2 MiB in a temporary file instead of in memory. */
  readonly spills?: boolean
  /** Called with each error that means the file or the disk has failed. */
  readonly onFault?: (error: EngineError) => void
}

/** The log's size at which it is checkpointed, and to which SQLite cuts it when it starts over. */
export const checkpointBytesOf = ({ small = false }: ConnectionOptions): number =>
  small ? walInstanceCheckpointBytes : walCheckpointBytes

export interface Connection {
  all(query: SqlText): SqlRow[]
  /**
   * As `all`, but ends before the row with which texts and blobs exceed `bytesMax`, or that is there only after
   * `untilMs` of `performance.now()`; never before the first.
   */
  some(query: SqlText, bytesMax: number, untilMs?: number): SomeRows
  /** Rows changed by the statement itself, not by its triggers. */
  run(query: SqlText): number
  /** The steps SQLite would take, as it words them. */
  plan(query: SqlText): string[]
  readonly inTransaction: boolean
  /** Runs fixed text such as `BEGIN` or a pragma. */
  exec(text: string): void
  close(): void
}

export interface SomeRows {
  readonly rows: SqlRow[]
  /** Characters of the texts and bytes of the blobs. */
  readonly bytes: number
  readonly isCut: boolean
}

function lengthOf(row: SqlRow): number {
  let length = 0
  for (const name in row) {
    const value = row[name]
    if (typeof value === 'string' || value instanceof Uint8Array) length += value.length
  }
  return length
}

const uniqueMessage = /^UNIQUE constraint failed: (.+)$/

const awayCodes = ['SQLITE_FULL', 'SQLITE_IOERR', 'SQLITE_BUSY', 'SQLITE_READONLY', 'SQLITE_CANTOPEN']

const damageCodes = ['SQLITE_CORRUPT', 'SQLITE_NOTADB']

/** For the operator, who sees it where a start fails, and in the log. Clients never see it. */
const describeDamage = (path: string, message: string): string =>
  `${path} is damaged (${message}). Stop the server, check the folder with \`plinth doctor\`, and restore a backup with \`plinth restore\`.`

/**
 * SQLite names the columns of a failed unique index only in its message: `UNIQUE constraint failed: posts.slug,
 * posts.lang`.
 */
function engineErrorOf(error: unknown, path: string): unknown {
  if (!(error instanceof SQLiteError)) return error
  if (error.code === 'SQLITE_CONSTRAINT_UNIQUE' || error.code === 'SQLITE_CONSTRAINT_PRIMARYKEY') {
    const columns = uniqueMessage.exec(error.message)?.[1]?.split(', ') ?? []
    const names = columns.map((column) => column.slice(column.indexOf('.') + 1))
    return new EngineError('unique', error.message, names, error)
  }
  if (damageCodes.some((code) => error.code?.startsWith(code)))
    return new EngineError('unavailable', describeDamage(path, error.message), [], error)
  if (awayCodes.some((code) => error.code?.startsWith(code)))
    return new EngineError('unavailable', error.message, [], error)
  return error
}

/** Opens the file and sets what its connections have in common. */
function openFile(path: string, options: ConnectionOptions): BunDatabase {
  const db = new BunDatabase(path, options.readonly ? { readonly: true } : { create: true, readwrite: true })
  try {
    configure(db, options)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

function configure(db: BunDatabase, options: ConnectionOptions): void {
  if (!options.readonly) {
    db.run('PRAGMA journal_mode = WAL')
    // Commits reach the log without waiting for the disk; the writer syncs it off the main thread before it
    // acknowledges.
    db.run('PRAGMA synchronous = NORMAL')
    // Checkpoints are made off the main thread.
    db.run('PRAGMA wal_autocheckpoint = 0')
    db.run(`PRAGMA journal_size_limit = ${checkpointBytesOf(options)}`)
  }
  db.run(`PRAGMA cache_size = -${options.small ? sqliteInstanceCacheKiB : sqliteCacheKiB}`)
  db.run(`PRAGMA temp_store = ${options.spills ? 'FILE' : 'MEMORY'}`)
  db.run('PRAGMA busy_timeout = 5000')
}

/**
 * Opens (and, unless read-only, creates) the file. `:memory:` is private to the connection. Throws `EngineError`
 * `unavailable` where that is refused.
 */
export function openConnection(path: string, options: ConnectionOptions = {}): Connection {
  let db: BunDatabase
  try {
    db = openFile(path, options)
  } catch (error) {
    throw engineErrorOf(error, path)
  }
  const statements = createLru<string, Statement>(statementCacheEntriesMax, (statement) => statement.finalize())

  function failed(error: unknown): unknown {
    const mapped = engineErrorOf(error, path)
    if (mapped instanceof EngineError && mapped.kind === 'unavailable') options.onFault?.(mapped)
    return mapped
  }

  function prepare(text: string): Statement {
    let statement = statements.get(text)
    if (!statement) {
      statement = db.prepare(text)
      statements.set(text, statement)
    }
    return statement
  }

  return {
    all({ text, values }) {
      try {
        return prepare(text).all(...(values as string[])) as SqlRow[]
      } catch (error) {
        throw failed(error)
      }
    },
    some({ text, values }, bytesMax, untilMs = Number.POSITIVE_INFINITY) {
      const rows: SqlRow[] = []
      let bytes = 0
      try {
        // Stepping costs up to a sixth more than `all`, which has no bound. Leaving the loop resets the statement.
        for (const row of prepare(text).iterate(...(values as string[])) as IterableIterator<SqlRow>) {
          const length = lengthOf(row)
          const isOver = bytes + length > bytesMax || (untilMs < Infinity && performance.now() > untilMs)
          if (isOver && rows.length > 0) return { rows, bytes, isCut: true }
          rows.push(row)
          bytes += length
        }
      } catch (error) {
        throw failed(error)
      }
      return { rows, bytes, isCut: false }
    },
    run({ text, values }) {
      try {
        return prepare(text).run(...(values as string[])).changes
      } catch (error) {
        throw failed(error)
      }
    },
    plan({ text, values }) {
      // Not from the cache: this runtime leaves an EXPLAIN unfinished, and with it open its connection would see no
      // later commit.
      const statement = db.prepare(`EXPLAIN QUERY PLAN ${text}`)
      try {
        return statement.all(...(values as string[])).map((step) => (step as { detail: string }).detail)
      } finally {
        statement.finalize()
      }
    },
    get inTransaction() {
      return db.inTransaction
    },
    exec(text) {
      try {
        prepare(text).run()
      } catch (error) {
        throw failed(error)
      }
    },
    close() {
      for (const statement of statements.values()) statement.finalize()
      statements.clear()
      db.close()
    },
  }
}
