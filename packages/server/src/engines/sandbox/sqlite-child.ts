/**
 * Child process, one per lane of an embedded SQL database: compiles and runs one statement at a time, confines it to
 * its file, and replies over a pipe. It has no secrets. Its parent kills it when a statement exceeds its deadline;
 * `sqlite-watchdog` kills it when a statement exceeds its memory or the parent is gone.
 */
import { readSync, statfsSync, statSync, writeSync } from 'node:fs'
import { setPriority } from 'node:os'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { createLru } from '../../base/concurrency/lru.ts'
import {
  sqlCacheKiB,
  sqlCompiledCharsMax,
  sqlCompiledMax,
  sqlDiskFreeBytesMin,
  sqlLockWaitMs,
  sqlLogBytesMax,
  sqlPageBytes,
  sqlProcessBytesMax,
  sqlProcessNiceness,
  sqlQueryBytesMax,
  sqlValueBytesMax,
} from '../../limits/resources.ts'
import { createFrameReader, writeFrame } from '../processes/pipe-frames.ts'
import { createRows, jsonOfDouble, jsonOfInteger, type Rows } from './rows.ts'
import { type SandboxCounts, type SandboxLimits, type SandboxValue, StatementError } from './sandbox.ts'
import { findRefused } from './sqlite-authorizer.ts'
import { createWatch } from './sqlite-watch-state.ts'
import { isBlank, tokenize } from './tokenizer.ts'

/** Kind of statements a process runs; one for reads cannot write. */
export type SandboxLane = 'reads' | 'writes'

/** Requests of the parent: run a statement, and, after `ran`, commit it. */
export type ChildRequest = { readonly query: string; readonly params: readonly SandboxValue[] } | 'commit'

/**
 * Replies of the child. The rows follow `done` in a frame of their own. `isSpent`: the process has grown so large that
 * it must be replaced.
 */
export type ChildReply =
  | { readonly kind: 'ready' }
  /** The statement has run; it takes effect with `commit`. */
  | { readonly kind: 'ran' }
  | { readonly kind: 'done'; readonly counts: SandboxCounts; readonly isSpent: boolean }
  | { readonly kind: 'refused'; readonly message: string; readonly isSpent: boolean }
  | { readonly kind: 'full' }
  | { readonly kind: 'diskFull' }
  | { readonly kind: 'busy' }
  | { readonly kind: 'broken'; readonly message: string }

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

/** Primary result codes of SQLite. */
const codes = { busy: 5, locked: 6, full: 13 } as const
/** I/O errors, a corrupt or replaced file: no statement can succeed. */
const broken: ReadonlySet<number> = new Set([8, 10, 11, 14, 26])

function replyOf(error: unknown): ChildReply {
  if (error instanceof StatementError) return { kind: 'refused', message: error.message, isSpent: isSpent() }
  const { errcode, message } = error as Error & { errcode?: number }
  const code = (errcode ?? 0) & 0xff
  if (code === codes.busy || code === codes.locked) return { kind: 'busy' }
  if (code === codes.full) return { kind: isDiskFull() ? 'diskFull' : 'full' }
  if (errcode === undefined || broken.has(code)) return { kind: 'broken', message }
  return { kind: 'refused', message, isSpent: isSpent() }
}

/** SQLite reports the same code for a database at its size limit and for a full disk. */
function isDiskFull(): boolean {
  const { bavail, bsize } = statfsSync(path ?? '.')
  return bavail * bsize < sqlDiskFreeBytesMin
}

interface Ran {
  readonly rows: string
  readonly counts: SandboxCounts
}

/** Statements worth caching. The others change the schema or have effects while they are compiled. */
const isCacheable = /^\s*(?:select|values|with|insert|update|delete|replace)\b/i

function openDatabase(path: string, limits: SandboxLimits, lane: SandboxLane) {
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

  /** What the authorizer last denied; `isInternal` while a statement of this file runs or compiles. */
  let refused: string | null = null
  let isInternal = false
  database.setAuthorizer((...action) => {
    const found = isInternal ? null : findRefused(action)
    refused ??= found
    return found === null ? 0 : 1
  })
  const internally = <T>(work: () => T): T => {
    isInternal = true
    try {
      return work()
    } finally {
      isInternal = false
    }
  }
  const changed = internally(() => database.prepare('SELECT changes() AS own, total_changes() AS total'))
  const readChanges = (): { own: number; total: number } =>
    lane === 'reads' ? { own: 0, total: 0 } : (internally(() => changed.get()) as { own: number; total: number })
  const compiled = createLru<string, StatementSync>(sqlCompiledMax)

  /** SQLite recompiles a cached statement when the schema has changed, and calls the authorizer again. */
  function compile(query: string): StatementSync {
    const known = compiled.get(query)
    if (known) return known
    const statement = compileNew(query)
    if (query.length <= sqlCompiledCharsMax && isCacheable.test(query)) compiled.set(query, statement)
    return statement
  }

  function compileNew(query: string): StatementSync {
    const statement = database.prepare(query)
    // SQLite compiles the first statement and ignores the rest.
    if (!isBlank(tokenize(query.slice(statement.sourceSQL.length), 'sqlite')))
      throw new StatementError('query', 'must be one statement')
    statement.setReadBigInts(true)
    statement.setReturnArrays(true)
    return statement
  }

  function execute(query: string, params: readonly SandboxValue[]): Ran {
    const startMs = performance.now()
    const before = readChanges().total
    const statement = compile(query)
    const values = params.map(bindable)
    let rows: Rows | null = null
    for (const row of statement.iterate(...values)) {
      // The columns are final only now: the statement may have been recompiled for its first row.
      rows ??= createRows(
        statement.columns().map(({ name }) => name),
        limits,
      )
      rows.add((row as unknown as unknown[]).map(jsonOf))
    }
    const { own, total } = readChanges()
    // SQLite's counter has 32 bits, which a long-lived process may exceed.
    const rowsWritten = Math.max(0, total - before)
    const counts = { changes: rowsWritten === 0 ? 0 : own, rowsRead: rows?.count ?? 0, rowsWritten }
    return { rows: rows?.text() ?? '[]', counts: { ...counts, durationMs: performance.now() - startMs } }
  }

  return {
    /** Runs a statement, to be committed with `keep` or rolled back with `undo`. Rolls back when it throws. */
    run(query: string, params: readonly SandboxValue[]): Ran {
      refused = null
      if (lane === 'writes') internally(() => database.exec('BEGIN'))
      try {
        return execute(query, params)
      } catch (error) {
        compiled.delete(query)
        this.undo()
        throw refused === null ? error : new StatementError('query', `not allowed: ${refused}`)
      }
    },
    /** Truncates a log beyond its bound. False while a reader pins it: no more may be written then. */
    shortenLog(): boolean {
      if ((statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) <= sqlLogBytesMax) return true
      return internally(() => {
        // Without waiting for readers: a later statement retries.
        database.exec('PRAGMA busy_timeout = 0')
        const done = database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number }
        database.exec(`PRAGMA busy_timeout = ${sqlLockWaitMs}`)
        return done.busy === 0
      })
    },
    keep: () => internally(() => database.exec('COMMIT')),
    undo() {
      // SQLite rolls back by itself on some errors.
      if (database.isTransaction) internally(() => database.exec('ROLLBACK'))
    },
    close: () => database.close(),
  }
}

/** The pipe may be non-blocking: retries until the parent has read. */
function send(...texts: readonly string[]): void {
  const frames = Buffer.concat(texts.map((text) => writeFrame(text)))
  for (let at = 0; at < frames.length; ) {
    try {
      at += writeSync(1, frames, at)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
      Atomics.wait(never, 0, 0, 1)
    }
  }
}

const never = new Int32Array(new SharedArrayBuffer(4))
/** Memory is not returned to the system, and must not count against a later, smaller statement. */
const isSpent = (): boolean => process.memoryUsage.rss() > sqlProcessBytesMax / 2

const reply = (message: ChildReply): void => send(JSON.stringify(message))

function serve(path: string, limits: SandboxLimits, lane: SandboxLane): void {
  const watch = createWatch()
  const database = openDatabase(path, limits, lane)
  let ran: Ran | null = null

  function answer({ counts, rows }: Ran): void {
    const done: ChildReply = { kind: 'done', counts, isSpent: isSpent() }
    send(JSON.stringify(done), rows)
    ran = null
  }

  function handle(request: ChildRequest): void {
    try {
      if (request === 'commit') {
        if (!ran) return
        database.keep()
        answer(ran)
        return
      }
      if (lane === 'writes' && !database.shortenLog()) {
        reply({ kind: 'busy' })
        return
      }
      watch.begin()
      ran = database.run(request.query, request.params)
      // The watchdog must not kill the process from here to the commit.
      watch.end()
      // A read has nothing to roll back, so it needs no commit.
      if (lane === 'reads') answer(ran)
      else reply({ kind: 'ran' })
    } catch (error) {
      ran = null
      database.undo()
      reply(replyOf(error))
      watch.end()
    }
  }

  reply({ kind: 'ready' })
  readFrames(handle)
  database.close()
}

/** Reads until the pipe ends, without an event loop: there is nothing else to do. */
function readFrames(handle: (request: ChildRequest) => void): void {
  const read = createFrameReader((body) => handle(JSON.parse(body.toString()) as ChildRequest))
  const buffer = Buffer.allocUnsafe(readBytes)
  for (;;) {
    try {
      const size = readSync(0, buffer)
      if (size === 0) return
      read(Buffer.from(buffer.subarray(0, size)))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
      Atomics.wait(never, 0, 0, 1)
    }
  }
}

const readBytes = 64 * 1024

const [path, limits, lane] = process.argv.slice(2)
if (path !== undefined && limits !== undefined) {
  try {
    setPriority(sqlProcessNiceness)
    serve(path, JSON.parse(limits) as SandboxLimits, lane === 'reads' ? 'reads' : 'writes')
  } catch (error) {
    reply({ kind: 'broken', message: error instanceof Error ? error.message : String(error) })
  }
  process.exit(0)
}
