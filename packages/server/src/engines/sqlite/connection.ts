/**
 * One connection to one SQLite file: pragmas, a bounded cache of prepared statements, SQLite's errors mapped to
 * `EngineError`.
 */
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
import type { PlanStep } from './query-plan.ts'

export interface ConnectionOptions {
  readonly readonly?: boolean
  /** Smaller page cache and log, for one of many databases. */
  readonly small?: boolean
  /** Sorts beyond the cache of 2 MiB spill to a temporary file instead of memory. */
  readonly spills?: boolean
  /** Called with each error that indicates a failed file or disk. */
  readonly onFault?: (error: EngineError) => void
}

/** Size of the log at which it is checkpointed, and to which SQLite truncates it on a restart. */
export const checkpointBytesOf = ({ small = false }: ConnectionOptions): number =>
  small ? walInstanceCheckpointBytes : walCheckpointBytes

export interface Connection {
  all(query: SqlText): SqlRow[]
  /**
   * Like `all`, but stops before the row that exceeds `bytesMax` (texts and blobs) or for which `isLate`; returns at
   * least one row.
   */
  some(query: SqlText, bytesMax: number, isLate?: () => boolean): SomeRows
  /** Rows changed by the statement itself, not by its triggers. */
  run(query: SqlText): number
  /** The steps of the query plan, which are not run. */
  plan(query: SqlText): PlanStep[]
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

const unavailableCodes = ['SQLITE_FULL', 'SQLITE_IOERR', 'SQLITE_BUSY', 'SQLITE_READONLY', 'SQLITE_CANTOPEN']

const corruptionCodes = ['SQLITE_CORRUPT', 'SQLITE_NOTADB']

/** For operators: shown when a start fails, and in the log. Clients never see it. */
const describeDamage = (path: string, message: string): string =>
  `${path} is damaged (${message}). Stop the server, check the folder with \`plinth doctor\`, and restore a backup with \`plinth restore\`.`

/**
 * SQLite reports the columns of a violated unique index only in the message: `UNIQUE constraint failed: posts.slug,
 * posts.lang`.
 */
function engineErrorOf(error: unknown, path: string): unknown {
  if (!(error instanceof SQLiteError)) return error
  if (error.code === 'SQLITE_CONSTRAINT_UNIQUE' || error.code === 'SQLITE_CONSTRAINT_PRIMARYKEY') {
    const columns = uniqueMessage.exec(error.message)?.[1]?.split(', ') ?? []
    const names = columns.map((column) => column.slice(column.indexOf('.') + 1))
    return new EngineError('unique', error.message, names, error)
  }
  if (corruptionCodes.some((code) => error.code?.startsWith(code)))
    return new EngineError('unavailable', describeDamage(path, error.message), [], error)
  if (unavailableCodes.some((code) => error.code?.startsWith(code)))
    return new EngineError('unavailable', error.message, [], error)
  return error
}

/**
 * The text with `+?` for each `?`: the same value without an effect on the plan. SQLite plans a statement again before
 * each run whose plan depends on a parameter, as `WHERE a = ? ORDER BY b` and `LIMIT ?` do. Texts are made by `sql`, so
 * that a `?` is always a parameter.
 */
const withStablePlan = (text: string): string => text.replaceAll('?', '+?')

/** Opens the file and applies the common pragmas. */
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
    // Commits do not wait for the disk; the writer syncs the log off the main thread before it acknowledges.
    db.run('PRAGMA synchronous = NORMAL')
    // Checkpoints run off the main thread.
    db.run('PRAGMA wal_autocheckpoint = 0')
    db.run(`PRAGMA journal_size_limit = ${checkpointBytesOf(options)}`)
  }
  db.run(`PRAGMA cache_size = -${options.small ? sqliteInstanceCacheKiB : sqliteCacheKiB}`)
  db.run(`PRAGMA temp_store = ${options.spills ? 'FILE' : 'MEMORY'}`)
  db.run('PRAGMA busy_timeout = 5000')
}

/**
 * Opens (and, unless read-only, creates) the file. `:memory:` is private to the connection. Throws `EngineError`
 * `unavailable` on failure.
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
      statement = db.prepare(withStablePlan(text))
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
    some({ text, values }, bytesMax, isLate) {
      const rows: SqlRow[] = []
      let bytes = 0
      try {
        // Stepping costs up to a sixth more than `all`. Leaving the loop resets the statement.
        for (const row of prepare(text).iterate(...(values as string[])) as IterableIterator<SqlRow>) {
          const length = lengthOf(row)
          const isOver = bytes + length > bytesMax || isLate?.()
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
      // Not cached: this runtime leaves an EXPLAIN unfinished, which would pin the connection to its snapshot.
      const statement = db.prepare(`EXPLAIN QUERY PLAN ${withStablePlan(text)}`)
      try {
        return statement.all(...(values as string[])) as PlanStep[]
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
