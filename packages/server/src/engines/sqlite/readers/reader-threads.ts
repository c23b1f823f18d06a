/**
 * Threads that read SQLite files, so that a slow read delays its own caller and no other. Callers share them fairly,
 * through a queue in rounds. Equal reads that wait are done once: the read begins after the last of them was requested,
 * so it sees what each of them has to see.
 */
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { createFairQueue, QueueFullError } from '../../../base/concurrency/fair-queue.ts'
import { releaseHandles } from '../../../base/open-files.ts'
import {
  readerThreadsMax,
  slowReadsWaitingMax,
  slowReadsWaitingPerCallerMax,
  slowReadTimeoutMs,
} from '../../../limits/sqlite.ts'
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
   * Reads from the file in some thread. Without a `caller`, the reads of a file wait as one caller's. Throws
   * `EngineError`: `crowded` when too many of the caller's wait, `busy` when too many of all, `unavailable` after the
   * time limit.
   */
  read(path: string, read: ThreadRead, caller?: string): Promise<PageRows<SqlRow>>
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
  /** Callers in whose part of the queue it waits: it begins with the first of them whose round it is. */
  readonly callers: Set<string>
  /** Aborts once it waits no longer, so that it leaves the queue. */
  readonly wait: AbortController
  /** Resolves when its thread is free again, whatever came of it. */
  readonly end: PromiseWithResolvers<void>
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

/** How many threads there are at most; one core is left to the rest of the process. */
const threadsMax = (): number => Math.max(1, Math.min(readerThreadsMax, availableParallelism() - 1))

/** What a caller is refused with where the queue has no room. */
function refusalOf(error: unknown, isShared: boolean): unknown {
  if (!(error instanceof QueueFullError)) return error
  return error.bound === 'caller' && !isShared
    ? new EngineError('crowded', 'Too many slow requests of yours are waiting')
    : new EngineError('busy', 'Too many slow reads are waiting')
}

/** Threads start with the first slow read and end with the process. */
export function openReaderThreads(timeoutMs = slowReadTimeoutMs, most = threadsMax()): ReaderThreads {
  const threads: Thread[] = []
  const queue = createFairQueue({
    running: most,
    waiting: slowReadsWaitingMax * most,
    waitingPerCaller: slowReadsWaitingPerCallerMax * most,
    waitMs: null,
  })
  /** Reads that no thread has begun, by key. */
  const waiting = new Map<string, Job>()
  let lastId = 0

  /** Ends the waiting of a job: a thread begins it, or it was refused. */
  function leave(job: Job): void {
    waiting.delete(job.key)
    job.wait.abort()
  }

  function refuse(job: Job, error: unknown): void {
    leave(job)
    clearTimeout(job.timer)
    for (const { reject } of job.waiters) reject(error)
    job.end.resolve()
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
      job.end.resolve()
    } else {
      const { kind, message } = answer.error
      refuse(job, kind ? new EngineError(kind, message) : new Error(message))
    }
  }

  function start(): Thread {
    const worker = new Worker(new URL('./reader-worker.ts', import.meta.url))
    const thread: Thread = { worker, job: null }
    worker.on('message', (message: ReadAnswer) => answer(thread, message))
    worker.on('error', (error) => fail(thread, new EngineError('unavailable', 'A reader thread failed', [], error)))
    worker.unref()
    threads.push(thread)
    return thread
  }

  /** Has a thread do the job; the queue runs no more of them than there may be threads. */
  async function run(job: Job): Promise<void> {
    // Begun already by the round of another caller.
    if (job.wait.signal.aborted) return
    leave(job)
    const thread = threads.find((one) => one.job === null) ?? start()
    thread.job = job
    thread.worker.postMessage(job.request)
    await job.end.promise
  }

  /** SQLite cannot be interrupted from here: the thread is ended and the next read starts another. */
  function expire(job: Job): void {
    const error = new EngineError('unavailable', 'A read took too long')
    const thread = threads.find((one) => one.job === job)
    if (thread) fail(thread, error)
    else refuse(job, error)
  }

  function enqueue(job: Job, caller: string, isShared: boolean): void {
    job.callers.add(caller)
    queue
      .enter(caller, job.wait.signal, () => run(job))
      .catch((error: unknown) => {
        if (job.wait.signal.aborted) return
        job.callers.delete(caller)
        // Where it also waits as another caller's, it is done all the same.
        if (job.callers.size === 0) refuse(job, refusalOf(error, isShared))
      })
  }

  function createJob(key: string, path: string, { query, bytesMax, alongside }: ThreadRead): Job {
    const job: Job = {
      key,
      request: { id: ++lastId, path, query, bytesMax, alongside },
      waiters: [],
      callers: new Set(),
      wait: new AbortController(),
      end: Promise.withResolvers(),
      // The timer also keeps a process alive that waits for nothing else, as one does at its start.
      timer: setTimeout(() => expire(job), timeoutMs),
    }
    waiting.set(key, job)
    return job
  }

  return {
    read(path, read, caller) {
      const key = keyOf(path, read)
      const job = waiting.get(key) ?? createJob(key, path, read)
      return new Promise((resolve, reject) => {
        job.waiters.push({ resolve, reject })
        const name = caller ?? path
        if (!job.callers.has(name)) enqueue(job, name, caller === undefined)
      })
    },
    forget(path) {
      for (const { worker } of threads) worker.postMessage({ forget: path } satisfies ForgetRequest)
    },
    close() {
      const closing = new EngineError('unavailable', 'The engine is closing')
      for (const job of [...waiting.values()]) refuse(job, closing)
      for (const thread of [...threads]) fail(thread, closing)
    },
  }
}
