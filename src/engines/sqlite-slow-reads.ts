/**
 * Reads that are slow run in threads, so that a scan of a large table delays its own caller and nobody else. Which ones
 * are slow is learned: a statement that scans a large file starts in a thread, one that keeps taking long on the main
 * thread goes there.
 */
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { createLru } from '../base/lru.ts'
import {
  readerThreadsMax,
  slowReadBytes,
  slowReadMs,
  slowReadRunsPerLook,
  slowReadsWaitingMax,
  slowReadTimeoutMs,
  statementCacheEntriesMax,
} from '../limits.ts'
import { EngineError, type EngineErrorKind } from './error.ts'
import type { SqlRow } from './sql.ts'
import type { SqlText } from './sql-text.ts'
import type { Connection } from './sqlite-connection.ts'

export interface ReadRequest {
  readonly id: number
  readonly path: string
  readonly query: SqlText
}

/** Asks a thread to close its handles of a file. */
export interface ForgetRequest {
  readonly forget: string
}

export type ReadAnswer =
  | { readonly id: number; readonly rows: SqlRow[] }
  | { readonly id: number; readonly error: { readonly kind: EngineErrorKind | null; readonly message: string } }

export interface ReaderThreads {
  /**
   * Reads from the file in some thread. Throws `EngineError`: `busy` when too many wait, `unavailable` after the time
   * limit.
   */
  read(path: string, query: SqlText): Promise<SqlRow[]>
  /** Closes the threads' handles of a file that is closed elsewhere. */
  forget(path: string): void
  close(): void
}

interface Waiting {
  readonly resolve: (rows: SqlRow[]) => void
  readonly reject: (error: unknown) => void
  readonly timer: ReturnType<typeof setTimeout>
}

interface Thread {
  readonly worker: Worker
  readonly waiting: Map<number, Waiting>
}

/** Threads start with the first slow read and end with the process. */
export function openReaderThreads(timeoutMs = slowReadTimeoutMs): ReaderThreads {
  const wanted = Math.max(1, Math.min(readerThreadsMax, availableParallelism() - 1))
  const threads: Thread[] = []
  let lastId = 0

  function fail(thread: Thread, error: EngineError): void {
    threads.splice(threads.indexOf(thread), 1)
    void thread.worker.terminate()
    for (const { reject, timer } of thread.waiting.values()) {
      clearTimeout(timer)
      reject(error)
    }
    thread.waiting.clear()
  }

  function start(): Thread {
    const worker = new Worker(new URL('./sqlite-reader-worker.ts', import.meta.url))
    const thread: Thread = { worker, waiting: new Map() }
    worker.on('message', (answer: ReadAnswer) => {
      const waiting = thread.waiting.get(answer.id)
      if (!waiting) return
      thread.waiting.delete(answer.id)
      clearTimeout(waiting.timer)
      if ('rows' in answer) waiting.resolve(answer.rows)
      else if (answer.error.kind) waiting.reject(new EngineError(answer.error.kind, answer.error.message))
      else waiting.reject(new Error(answer.error.message))
    })
    worker.on('error', (error) => fail(thread, new EngineError('unavailable', 'A reader thread failed', [], error)))
    worker.unref()
    threads.push(thread)
    return thread
  }

  function leastBusy(): Thread {
    let best = threads[0]
    for (const thread of threads) if (!best || thread.waiting.size < best.waiting.size) best = thread
    return best && (best.waiting.size === 0 || threads.length >= wanted) ? best : start()
  }

  return {
    read(path, query) {
      const thread = leastBusy()
      if (thread.waiting.size >= slowReadsWaitingMax)
        return Promise.reject(new EngineError('busy', 'Too many slow reads are waiting'))
      const id = ++lastId
      return new Promise((resolve, reject) => {
        // SQLite cannot be interrupted from here: the thread is ended and the next read starts another. The timer also
        // keeps a process alive that waits for nothing else, as one does at its start.
        const timer = setTimeout(() => fail(thread, new EngineError('unavailable', 'A read took too long')), timeoutMs)
        thread.waiting.set(id, { resolve, reject, timer })
        thread.worker.postMessage({ id, path, query } satisfies ReadRequest)
      })
    },
    forget(path) {
      for (const { worker } of threads) worker.postMessage({ forget: path } satisfies ForgetRequest)
    },
    close() {
      for (const thread of [...threads]) fail(thread, new EngineError('unavailable', 'The engine is closing'))
    },
  }
}

/** What was learned of one statement. */
interface Pace {
  isSlow: boolean
  runs: number
  /**
   * Rises with a long run and falls slowly with short ones: one long run may have been the machine's doing, several are
   * the statement's.
   */
  strikes: number
}

const strikesMax = 3
const strikesForgivenPerRun = 0.05

/** A full pass over a table or index with a condition to test, or a sort of everything: what grows with the table. */
const growsWithTable = /^SCAN (?!CONSTANT|json_each)|USE TEMP B-TREE FOR ORDER BY/

/** Reads through `connection`, and in threads what is or has proved slow. */
export function createPacedReader(
  connection: Connection,
  path: string,
  threads: ReaderThreads,
): (query: SqlText) => SqlRow[] | Promise<SqlRow[]> {
  const paces = createLru<string, Pace>(statementCacheEntriesMax)

  function look(query: SqlText): boolean {
    const [size] = connection.all({
      text: 'SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size',
      values: [],
    })
    if (Number(size?.bytes) < slowReadBytes) return false
    const isFiltered = query.text.includes(' WHERE ')
    const plan = connection.plan(query)
    // What a full-text search costs hangs on its words, not on the table: it is learned like anything else.
    if (plan.some((step) => step.includes('VIRTUAL TABLE'))) return false
    // Without a condition an index walk stops at its LIMIT.
    return plan.some((step) => growsWithTable.test(step) && (isFiltered || !step.includes('USING')))
  }

  return (query) => {
    let pace = paces.get(query.text)
    if (!pace) {
      pace = { isSlow: look(query), runs: 0, strikes: 0 }
      paces.set(query.text, pace)
    } else if (++pace.runs === slowReadRunsPerLook) {
      // The table may have grown, or an index may have come.
      pace.isSlow = look(query)
      pace.runs = 0
    }
    if (pace.isSlow) return threads.read(path, query)
    const startMs = performance.now()
    const rows = connection.all(query)
    if (performance.now() - startMs > slowReadMs) pace.strikes += 1
    else pace.strikes = Math.max(0, pace.strikes - strikesForgivenPerRun)
    if (pace.strikes >= strikesMax) pace.isSlow = true
    return rows
  }
}
