/**
 * Threads that read SQLite files, so that a slow read delays only its own caller. Callers share them through a fair
 * round-robin queue. Identical pending reads run once: the read begins after the last of them was requested, so its
 * snapshot satisfies each.
 */
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import {
  createFairQueue,
  type FairQueue,
  QueueFullError,
  QueueTimeoutError,
} from '../../../base/concurrency/fair-queue.ts'
import { releaseHandles } from '../../../base/files/open-files.ts'
import {
  readerThreadsMax,
  slowReadsStanding,
  slowReadsWaitingMax,
  slowReadsWaitingPerCallerMax,
  slowReadTimeoutMs,
} from '../../../limits/sqlite.ts'
import { EngineError, type EngineErrorKind } from '../../sql/error.ts'
import type { PageRows } from '../../sql/page-query.ts'
import type { SqlRow } from '../../sql/sql.ts'
import type { SqlText } from '../../sql/sql-text.ts'

/** A statement for a thread, with a bound on the size of its rows. */
export interface ThreadRead {
  readonly query: SqlText
  readonly bytesMax: number
  /** A scalar read in the same transaction. */
  readonly scalar: SqlText | null
}

export interface ReadRequest extends ThreadRead {
  readonly id: number
  readonly path: string
}

/** Requests a thread to close its handles of a file. */
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

interface Waiter {
  readonly resolve: (page: PageRows<SqlRow>) => void
  readonly reject: (error: unknown) => void
}

/** One read and its waiters. */
interface Job {
  readonly key: string
  readonly request: ReadRequest
  readonly waiters: Waiter[]
  /** Callers in whose queues it waits; it begins with whichever is served first. */
  readonly callers: Set<string>
  /** Aborted when the job leaves the queue. */
  readonly wait: AbortController
  /** Resolves when its thread is free again, on success or failure. */
  readonly end: PromiseWithResolvers<void>
  readonly timer: ReturnType<typeof setTimeout>
}

interface Thread {
  readonly worker: Worker
  job: Job | null
}

/** Callers may modify their rows, so each gets a copy. */
const copyOf = (page: PageRows<SqlRow>): PageRows<SqlRow> => ({ ...page, rows: page.rows.map((row) => ({ ...row })) })

const keyOf = (path: string, { query, bytesMax, scalar }: ThreadRead): string =>
  JSON.stringify([path, query.text, query.values, bytesMax, scalar?.text, scalar?.values])

/** Maximum number of threads; leaves one core to the rest of the process. */
const threadsMax = (): number => Math.max(1, Math.min(readerThreadsMax, availableParallelism() - 1))

/** The error for a caller when the queue is full. */
function refusalOf(error: unknown, isShared: boolean): unknown {
  if (error instanceof QueueTimeoutError) return new EngineError('busy', 'A slow read waited too long')
  if (!(error instanceof QueueFullError)) return error
  return error.bound === 'caller' && !isShared
    ? new EngineError('crowded', 'Too many slow requests of yours are waiting')
    : new EngineError('busy', 'Too many slow reads are waiting')
}

/** Threads start on demand and end with the process. */
export class ReaderThreads {
  readonly #timeoutMs: number
  readonly #threads: Thread[] = []
  readonly #queue: FairQueue
  /** Reads that have not started, by key. */
  readonly #waiting = new Map<string, Job>()
  #lastId = 0

  constructor(timeoutMs = slowReadTimeoutMs, most = threadsMax()) {
    this.#timeoutMs = timeoutMs
    this.#queue = createFairQueue({
      running: most,
      waiting: slowReadsWaitingMax * most,
      waitingPerCaller: slowReadsWaitingPerCallerMax * most,
      waitMs: null,
      standing: slowReadsStanding,
    })
  }

  /**
   * Reads from the file in a thread. Without a `caller`, the reads of a file share one queue. Throws `EngineError`:
   * `crowded` when too many reads of the caller are pending, `busy` when too many in total or after too long a wait,
   * `unavailable` after the time limit.
   */
  read(path: string, read: ThreadRead, caller?: string): Promise<PageRows<SqlRow>> {
    const key = keyOf(path, read)
    const job = this.#waiting.get(key) ?? this.#createJob(key, path, read)
    return new Promise((resolve, reject) => {
      job.waiters.push({ resolve, reject })
      const name = caller ?? path
      if (!job.callers.has(name)) this.#enqueue(job, name, caller === undefined)
    })
  }

  /** Closes the threads' handles of a file that was closed elsewhere. */
  forget(path: string): void {
    for (const { worker } of this.#threads) worker.postMessage({ forget: path } satisfies ForgetRequest)
  }

  close(): void {
    const closing = new EngineError('unavailable', 'The engine is closing')
    for (const job of [...this.#waiting.values()]) this.#refuse(job, closing)
    for (const thread of [...this.#threads]) this.#fail(thread, closing)
  }

  #createJob(key: string, path: string, { query, bytesMax, scalar }: ThreadRead): Job {
    const job: Job = {
      key,
      request: { id: ++this.#lastId, path, query, bytesMax, scalar },
      waiters: [],
      callers: new Set(),
      wait: new AbortController(),
      end: Promise.withResolvers(),
      // The timer also keeps the process alive while a read is pending, e.g. during startup.
      timer: setTimeout(() => this.#expire(job), this.#timeoutMs),
    }
    this.#waiting.set(key, job)
    return job
  }

  #enqueue(job: Job, caller: string, isShared: boolean): void {
    job.callers.add(caller)
    this.#queue
      .enter(caller, job.wait.signal, () => this.#run(job))
      .catch((error: unknown) => {
        if (job.wait.signal.aborted) return
        job.callers.delete(caller)
        // If it also waits in another caller's queue, it still runs.
        if (job.callers.size === 0) this.#refuse(job, refusalOf(error, isShared))
      })
  }

  /** Runs the job in a thread; the queue admits no more jobs than threads. */
  async #run(job: Job): Promise<void> {
    // Already started through another caller's queue.
    if (job.wait.signal.aborted) return
    this.#leave(job)
    const thread = this.#threads.find((one) => one.job === null) ?? this.#start()
    thread.job = job
    thread.worker.postMessage(job.request)
    await job.end.promise
  }

  #start(): Thread {
    const worker = new Worker(new URL('./reader-worker.ts', import.meta.url))
    const thread: Thread = { worker, job: null }
    worker.on('message', (message: ReadAnswer) => this.#answer(thread, message))
    worker.on('error', (error) =>
      this.#fail(thread, new EngineError('unavailable', 'A reader thread failed', [], error)),
    )
    worker.unref()
    this.#threads.push(thread)
    return thread
  }

  #answer(thread: Thread, answer: ReadAnswer): void {
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
      this.#refuse(job, kind ? new EngineError(kind, message) : new Error(message))
    }
  }

  /** SQLite cannot be interrupted from here: terminates the thread; the next read starts another. */
  #expire(job: Job): void {
    const error = new EngineError('unavailable', 'A read took too long')
    const thread = this.#threads.find((one) => one.job === job)
    if (thread) this.#fail(thread, error)
    else this.#refuse(job, error)
  }

  /** Terminates a thread and fails its job. */
  #fail(thread: Thread, error: EngineError): void {
    this.#threads.splice(this.#threads.indexOf(thread), 1)
    void thread.worker.terminate()
    if (thread.job) this.#refuse(thread.job, error)
    thread.job = null
  }

  #refuse(job: Job, error: unknown): void {
    this.#leave(job)
    clearTimeout(job.timer)
    for (const { reject } of job.waiters) reject(error)
    job.end.resolve()
  }

  /** Removes a job from the queue: it starts or was rejected. */
  #leave(job: Job): void {
    this.#waiting.delete(job.key)
    job.wait.abort()
  }
}
