/**
 * A SQLite file for untrusted statements, in the child process that runs them: the pragmas and the authorizer that
 * confine a statement to the file, its transaction, and its rows as JSON.
 */
import { statSync } from 'node:fs'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { createLru } from '../../../base/concurrency/lru.ts'
import {
  sqlCacheKiB,
  sqlCompiledCharsMax,
  sqlCompiledMax,
  sqlLockWaitMs,
  sqlLogBytesMax,
  sqlPageBytes,
  sqlQueryBytesMax,
  sqlStabilizedMsMax,
  sqlValueBytesMax,
} from '../../../limits/resources.ts'
import { createRows, jsonOfDouble, jsonOfInteger, type Rows } from '../rows.ts'
import { type SandboxCounts, type SandboxLimits, type SandboxValue, StatementError } from '../sandbox.ts'
import { isBlank, tokenize } from '../tokenizer.ts'
import { type Action, findRefused } from './authorizer.ts'
import { findStable } from './stable-plan.ts'

/** Kind of statements a process runs; one for reads cannot write. */
export type SandboxLane = 'reads' | 'writes'

/** A SQLite value as JSON. */
function jsonOf(value: unknown): string {
  if (value === null) return 'null'
  if (typeof value === 'bigint') return jsonOfInteger(value)
  if (typeof value === 'number') return jsonOfDouble(value)
  if (typeof value === 'string') return JSON.stringify(value)
  const bytes = value as Uint8Array
  return `"${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')}"`
}

/** Binds integers as integers: the runtime would bind them as floating-point numbers. */
function bindable(value: SandboxValue): SQLInputValue {
  if (typeof value === 'boolean') return value ? 1n : 0n
  return Number.isSafeInteger(value) ? BigInt(value as number) : value
}

/** Statements worth caching. The others change the schema or have effects while they are compiled. */
const isCacheable = /^\s*(?:select|values|with|insert|update|delete|replace)\b/i

interface Compiled {
  statement: StatementSync
  /** `open` until it has been planned again in a run, then `stable` or, without such a form, `kept`. */
  form: 'open' | 'stable' | 'kept'
}

/** Result of a statement. */
export interface Ran {
  readonly rows: string
  readonly counts: SandboxCounts
}

function openDatabase(path: string, limits: SandboxLimits, lane: SandboxLane): DatabaseSync {
  const database = new DatabaseSync(path, {
    allowExtension: false,
    defensive: true,
    enableDoubleQuotedStringLiterals: false,
    enableForeignKeyConstraints: true,
    timeout: sqlLockWaitMs,
    limits: { attach: 0, length: sqlValueBytesMax, sqlLength: sqlQueryBytesMax, triggerDepth: 100 },
  })
  // Sorts stay in memory, which the watchdog bounds; disk use would be unbounded.
  for (const pragma of [
    'synchronous = FULL',
    'temp_store = MEMORY',
    'trusted_schema = OFF',
    'cell_size_check = ON',
    `cache_size = -${sqlCacheKiB}`,
    `max_page_count = ${Math.floor(limits.bytesMax / sqlPageBytes)}`,
    `query_only = ${lane === 'reads' ? 'ON' : 'OFF'}`,
  ])
    database.exec(`PRAGMA ${pragma}`)
  return database
}

function configured(statement: StatementSync): StatementSync {
  statement.setReadBigInts(true)
  statement.setReturnArrays(true)
  return statement
}

export class ConfinedDatabase {
  readonly #database: DatabaseSync
  readonly #path: string
  readonly #limits: SandboxLimits
  readonly #lane: SandboxLane
  readonly #compiled = createLru<string, Compiled>(sqlCompiledMax)
  readonly #changes: StatementSync
  /** What the authorizer last denied. */
  #refused: string | null = null
  /** True while a statement of this file runs or compiles. */
  #isInternal = false
  /** Set when SQLite plans a statement, also while one runs. */
  #isPlanned = false

  constructor(path: string, limits: SandboxLimits, lane: SandboxLane) {
    this.#path = path
    this.#limits = limits
    this.#lane = lane
    this.#database = openDatabase(path, limits, lane)
    this.#database.setAuthorizer((...action) => this.#authorize(action))
    this.#changes = this.#internally(() => this.#database.prepare('SELECT changes() AS own, total_changes() AS total'))
  }

  /** Runs a statement, to be committed with `commit` or rolled back with `rollBack`. Rolls back when it throws. */
  run(query: string, params: readonly SandboxValue[]): Ran {
    this.#refused = null
    if (this.#lane === 'writes') this.#internally(() => this.#database.exec('BEGIN'))
    try {
      return this.#execute(query, params)
    } catch (error) {
      this.#compiled.delete(query)
      this.rollBack()
      throw this.#refused === null ? error : new StatementError('query', `not allowed: ${this.#refused}`)
    }
  }

  commit(): void {
    this.#internally(() => this.#database.exec('COMMIT'))
  }

  rollBack(): void {
    // SQLite rolls back by itself on some errors.
    if (this.#database.isTransaction) this.#internally(() => this.#database.exec('ROLLBACK'))
  }

  /** Truncates a log beyond its bound. False while a reader pins it: no more may be written then. */
  shortenLog(): boolean {
    if ((statSync(`${this.#path}-wal`, { throwIfNoEntry: false })?.size ?? 0) <= sqlLogBytesMax) return true
    return this.#internally(() => {
      // Without waiting for readers: a later statement retries.
      this.#database.exec('PRAGMA busy_timeout = 0')
      const done = this.#database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number }
      this.#database.exec(`PRAGMA busy_timeout = ${sqlLockWaitMs}`)
      return done.busy === 0
    })
  }

  close(): void {
    this.#database.close()
  }

  #authorize(action: Action): number {
    const found = this.#isInternal ? null : findRefused(action)
    this.#refused ??= found
    this.#isPlanned ||= !this.#isInternal
    return found === null ? 0 : 1
  }

  #internally<T>(work: () => T): T {
    this.#isInternal = true
    try {
      return work()
    } finally {
      this.#isInternal = false
    }
  }

  #execute(query: string, params: readonly SandboxValue[]): Ran {
    const startMs = performance.now()
    const before = this.#readChanges().total
    const known = this.#compiled.get(query)
    const statement = known?.statement ?? this.#compile(query)
    this.#isPlanned = false
    const values = params.map(bindable)
    let rows: Rows | null = null
    for (const row of statement.iterate(...values)) {
      // The columns are final only now: the statement may have been recompiled for its first row.
      rows ??= createRows(
        statement.columns().map(({ name }) => name),
        this.#limits,
      )
      rows.add((row as unknown as unknown[]).map(jsonOf))
    }
    const { own, total } = this.#readChanges()
    // SQLite's counter has 32 bits, which a long-lived process may exceed.
    const rowsWritten = Math.max(0, total - before)
    const counts = { changes: rowsWritten === 0 ? 0 : own, rowsRead: rows?.count ?? 0, rowsWritten }
    const durationMs = performance.now() - startMs
    if (known && this.#isPlanned) this.#stabilize(query, { known, values, durationMs })
    return { rows: rows?.text() ?? '[]', counts: { ...counts, durationMs } }
  }

  /** After a run that planned a cached statement again: so may each of its runs, or the schema has changed. */
  #stabilize(
    query: string,
    { known, values, durationMs }: { known: Compiled; values: readonly SQLInputValue[]; durationMs: number },
  ): void {
    // Another schema may have a better plan for the text as written.
    if (known.form === 'stable') this.#compiled.delete(query)
    if (known.form !== 'open' || durationMs > sqlStabilizedMsMax) return
    const stable = findStable(this.#database, { query, statement: known.statement, values })
    known.form = stable ? 'stable' : 'kept'
    if (stable) known.statement = configured(stable)
  }

  #readChanges(): { own: number; total: number } {
    if (this.#lane === 'reads') return { own: 0, total: 0 }
    return this.#internally(() => this.#changes.get()) as { own: number; total: number }
  }

  /** SQLite recompiles a cached statement when the schema has changed, and calls the authorizer again. */
  #compile(query: string): StatementSync {
    const statement = configured(this.#database.prepare(query))
    // SQLite compiles the first statement and ignores the rest.
    if (!isBlank(tokenize(query.slice(statement.sourceSQL.length), 'sqlite')))
      throw new StatementError('query', 'must be one statement')
    if (query.length <= sqlCompiledCharsMax && isCacheable.test(query))
      this.#compiled.set(query, { statement, form: 'open' })
    return statement
  }
}
