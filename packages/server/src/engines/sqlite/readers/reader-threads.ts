/**
 * Threads that read SQLite files, so that a slow read delays its own caller and no other. Equal reads that wait are
 * done once: each is begun after the last of them was asked for, so it sees what every one of them has to see.
 */
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { releaseHandles } from '../../../base/open-files.ts'
import { readerThreadsMax, slowReadsWaitingMax, slowReadTimeoutMs } from '../../../limits/sqlite.ts'
import { EngineError, type EngineErrorKind } from '../../sql/error.ts'
import type { PageRows } from '../../sql/page-query.ts'
import type { SqlRow } from '../../sql/sql.ts'
import type { SqlText } from '../../sql/sql-text.ts'

/** A statement for a thread, with bounds where its rows may be of any size. */
export interface ThreadRead {
  readonly query: SqlText
  readonly bytesMax: number
  /** A scalar to read in the same transaction. */
  readonly alongside: SqlText | null
}

export interface ReadRequest extends ThreadRead {
  readonly id: number
  readonly path: string
}

/** Asks a thread to close its handles of a file. */
export interface ForgetRequest {
  readonly forget: string
}

export type ReadAnswer =
  | { readonly id: number; readonly page: PageRows<SqlRow> }
  | { readonly id: number; readonly error: ReadFailure }

interface ReadFailure {
  readonly kind: EngineErrorKind | null
  readonly message: string
  readonly isOutOfHandles: boolean
}

export interface ReaderThreads {
  /**
   * Reads from the file in some thread. Throws `EngineError`: `busy` when too many wait, `unavailable` after the time
   * limit.
   */
  read(path: string, read: ThreadRead): Promise<PageRows<SqlRow>>
  /** Closes the threads' handles of a file that is closed elsewhere. */
  forget(path: string): void
  close(): void
}

interface Waiter {
  readonly resolve: (page: PageRows<SqlRow>) => void
  readonly reject: (error: unknown) => void
}

/** One read and all who wait for it. */
interface Job {
  readonly key: string
  readonly request: ReadRequest
  readonly waiters: Waiter[]
  readonly timer: ReturnType<typeof setTimeout>
}

interface Thread {
  readonly worker: Worker
  job: Job | null
}

/** Callers may change the rows they get, each its own. */
const copyOf = (page: PageRows<SqlRow>): PageRows<SqlRow> => ({ ...page, rows: page.rows.map((row) => ({ ...row })) })

const keyOf = (path: string, { query, bytesMax, alongside }: ThreadRead): string =>
  JSON.stringify([path, query.text, query.values, bytesMax, alongside?.text, alongside?.values])

/** Threads start with the first slow read and end with the process. */
export function openReaderThreads(timeoutMs = slowReadTimeoutMs): ReaderThreads {
  const wanted = Math.max(1, Math.min(readerThreadsMax, availableParallelism() - 1))
  const threads: Thread[] = []
  /** Reads that no thread has begun, by key, in the order they came. */
  const queue = new Map<string, Job>()
  let lastId = 0

  function refuse({ waiters, timer }: Job, error: unknown): void {
    clearTimeout(timer)
    for (const { reject } of waiters) reject(error)
  }

  /** Ends a thread and fails what it does. */
  function fail(thread: Thread, error: EngineError): void {
    threads.splice(threads.indexOf(thread), 1)
    void thread.worker.terminate()
    if (thread.job) refuse(thread.job, error)
    thread.job = null
  }

  function answer(thread: Thread, answer: ReadAnswer): void {
    const { job } = thread
    if (job?.request.id !== answer.id) return
    if ('error' in answer && answer.error.isOutOfHandles && releaseHandles()) {
      thread.worker.postMessage(job.request)
      return
    }
    thread.job = null
    if ('page' in answer) {
      clearTimeout(job.timer)
      for (const [at, { resolve }] of job.waiters.entries()) resolve(at === 0 ? answer.page : copyOf(answer.page))
    } else {
      const { kind, message } = answer.error
      refuse(job, kind ? new EngineError(kind, message) : new Error(message))
    }
    beginNext()
  }

  function start(): Thread {
    const worker = new Worker(new URL('./reader-worker.ts', import.meta.url))
    const thread: Thread = { worker, job: null }
    worker.on('message', (message: ReadAnswer) => answer(thread, message))
    worker.on('error', (error) => {
      fail(thread, new EngineError('unavailable', 'A reader thread failed', [], error))
      beginNext()
    })
    worker.unref()
    threads.push(thread)
    return thread
  }

  function beginNext(): void {
    for (const job of queue.values()) {
      const free = threads.find((thread) => thread.job === null) ?? (threads.length < wanted ? start() : null)
      if (!free) return
      queue.delete(job.key)
      free.job = job
      free.worker.postMessage(job.request)
    }
  }

  /** SQLite cannot be interrupted from here: the thread is ended and the next read starts another. */
  function expire(key: string, id: number): void {
    const error = new EngineError('unavailable', 'A read took too long')
    const waiting = queue.get(key)
    if (waiting?.request.id === id) {
      queue.delete(key)
      refuse(waiting, error)
      return
    }
    const thread = threads.find(({ job }) => job?.request.id === id)
    if (thread) fail(thread, error)
    beginNext()
  }

  return {
    read(path, read) {
      const key = keyOf(path, read)
      const equal = queue.get(key)
      if (!equal && queue.size >= slowReadsWaitingMax * wanted)
        return Promise.reject(new EngineError('busy', 'Too many slow reads are waiting'))
      return new Promise((resolve, reject) => {
        if (equal) {
          equal.waiters.push({ resolve, reject })
          return
        }
        const id = ++lastId
        // The timer also keeps a process alive that waits for nothing else, as one does at its start.
        const timer = setTimeout(() => expire(key, id), timeoutMs)
        queue.set(key, { key, request: { id, path, ...read }, waiters: [{ resolve, reject }], timer })
        beginNext()
      })
    },
    forget(path) {
      for (const { worker } of threads) worker.postMessage({ forget: path } satisfies ForgetRequest)
    },
    close() {
      const closing = new EngineError('unavailable', 'The engine is closing')
      for (const job of queue.values()) refuse(job, closing)
      queue.clear()
      for (const thread of [...threads]) fail(thread, closing)
    },
  }
}
