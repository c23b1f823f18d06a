/**
 * Runs in a process of its own, one per lane of an embedded SQL database: compiles and runs one statement at a time,
 * keeps it within its file, and answers over a pipe. It holds no secret and is ended by its parent when a statement
 * takes too long, by `sandbox-sqlite-watchdog` when one takes too much memory or the parent is gone.
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

/** What a process runs: one for reads can write nothing, whatever it is told. */
export type SandboxLane = 'reads' | 'writes'

/** What the parent says: run this, and, once it is asked, that what was done may stay. */
export type ChildRequest = { readonly query: string; readonly params: readonly SandboxValue[] } | 'commit'

/**
 * What the child says. The rows follow `done` in a message of their own. One that is spent has grown so large that it
 * should be asked nothing more.
 */
export type ChildReply =
  | { readonly kind: 'ready' }
  /** The statement has run; nothing of it stays until the parent says so. */
  | { readonly kind: 'ran' }
  | { readonly kind: 'done'; readonly counts: SandboxCounts; readonly isSpent: boolean }
  | { readonly kind: 'refused'; readonly message: string; readonly isSpent: boolean }
  | { readonly kind: 'full' }
  | { readonly kind: 'diskFull' }
  | { readonly kind: 'busy' }
  | { readonly kind: 'broken'; readonly message: string }

/** What a value of SQLite is as JSON. */
function jsonOf(value: unknown): string {
  if (value === null) return 'null'
  if (typeof value === 'bigint') return jsonOfInteger(value)
  if (typeof value === 'number') return jsonOfDouble(value)
  if (typeof value === 'string') return JSON.stringify(value)
  const bytes = value as Uint8Array
  return `"${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')}"`
}

/** Whole numbers are bound as such: the runtime would make floating-point numbers of them. */
function bindable(value: SandboxValue): SQLInputValue {
  if (typeof value === 'boolean') return value ? 1n : 0n
  return Number.isSafeInteger(value) ? BigInt(value as number) : value
}

/** Primary result codes of SQLite. */
const codes = { busy: 5, locked: 6, full: 13 } as const
/** I/O, a damaged or replaced file: no statement will succeed here. */
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

/** SQLite says the same of a database at its bound and of a disk without room. */
function isDiskFull(): boolean {
  const { bavail, bsize } = statfsSync(path ?? '.')
  return bavail * bsize < sqlDiskFreeBytesMin
}

interface Ran {
  readonly rows: string
  readonly counts: SandboxCounts
}

/** Statements that are likely to come again. The others change the schema, or do something while they are compiled. */
const comesAgain = /^\s*(?:select|values|with|insert|update|delete|replace)\b/i

function openDatabase(path: string, limits: SandboxLimits, lane: SandboxLane) {
  const database = new DatabaseSync(path, {
    allowExtension: false,
    defensive: true,
    enableDoubleQuotedStringLiterals: false,
    enableForeignKeyConstraints: true,
    timeout: sqlLockWaitMs,
    limits: { attach: 0, length: sqlValueBytesMax, sqlLength: sqlQueryBytesMax, triggerDepth: 100 },
  })
  // Sorts and the like stay in memory, which the watchdog bounds: nothing bounds what they would write to disk.
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

  /** What the authorizer last refused; `ours` while a statement of this file is run or compiled. */
  let refused: string | null = null
  let ours = false
  database.setAuthorizer((...action) => {
    const found = ours ? null : findRefused(action)
    refused ??= found
    return found === null ? 0 : 1
  })
  const ourOwn = <T>(work: () => T): T => {
    ours = true
    try {
      return work()
    } finally {
      ours = false
    }
  }
  const changed = ourOwn(() => database.prepare('SELECT changes() AS own, total_changes() AS total'))
  const readChanges = (): { own: number; total: number } =>
    lane === 'reads' ? { own: 0, total: 0 } : (ourOwn(() => changed.get()) as { own: number; total: number })
  const compiled = createLru<string, StatementSync>(sqlCompiledMax)

  /**
   * SQLite compiles one that it has compiled before anew where the schema has changed since, and asks about everything
   * it would do again.
   */
  function compile(query: string): StatementSync {
    const known = compiled.get(query)
    if (known) return known
    const statement = compileNew(query)
    if (query.length <= sqlCompiledCharsMax && comesAgain.test(query)) compiled.set(query, statement)
    return statement
  }

  function compileNew(query: string): StatementSync {
    const statement = database.prepare(query)
    // SQLite compiles the first statement and leaves the rest.
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
      // Known for sure only now: the statement may have been compiled anew to give its first row.
      rows ??= createRows(
        statement.columns().map(({ name }) => name),
        limits,
      )
      rows.add((row as unknown as unknown[]).map(jsonOf))
    }
    const { own, total } = readChanges()
    // SQLite counts in 32 bits, which a long-lived process may exceed.
    const rowsWritten = Math.max(0, total - before)
    const counts = { changes: rowsWritten === 0 ? 0 : own, rowsRead: rows?.count ?? 0, rowsWritten }
    return { rows: rows?.text() ?? '[]', counts: { ...counts, durationMs: performance.now() - startMs } }
  }

  return {
    /** Runs it, and leaves what it did to be kept or undone. Throws with it undone. */
    run(query: string, params: readonly SandboxValue[]): Ran {
      refused = null
      if (lane === 'writes') ourOwn(() => database.exec('BEGIN'))
      try {
        return execute(query, params)
      } catch (error) {
        compiled.delete(query)
        this.undo()
        throw refused === null ? error : new StatementError('query', `not allowed: ${refused}`)
      }
    },
    /** Whether more may be written: not while the log is too long and somebody still reads what is in it. */
    shortenLog(): boolean {
      if ((statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) <= sqlLogBytesMax) return true
      return ourOwn(() => {
        // Without waiting for readers: a later statement will find them gone.
        database.exec('PRAGMA busy_timeout = 0')
        const done = database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number }
        database.exec(`PRAGMA busy_timeout = ${sqlLockWaitMs}`)
        return done.busy === 0
      })
    },
    keep: () => ourOwn(() => database.exec('COMMIT')),
    undo() {
      // SQLite itself undoes the whole transaction for some errors.
      if (database.isTransaction) ourOwn(() => database.exec('ROLLBACK'))
    },
    close: () => database.close(),
  }
}

/** The pipe may be set not to wait: then it is asked again until the parent has read. */
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
/** Memory is not given back, and must not be counted against a statement that needs little. */
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
      // Nobody may end what is about to be kept.
      watch.end()
      // What only reads need not be asked about: there is nothing to undo.
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

/** Reads until the pipe ends, without an event loop: there is never anything else to do meanwhile. */
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
