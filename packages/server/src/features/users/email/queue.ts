/**
 * In-memory mail queue with bounded concurrency, a bounded length, and retries with backoff. Mails that a crash loses
 * are requested again by their recipients.
 */
import { mailConnectionsMax, mailQueueMax } from '../../../limits/users.ts'

/** A failed attempt. */
export interface Failure {
  readonly error: unknown
  /** Attempts so far, including this one. */
  readonly attempts: number
  /** Whether there will be no retry. */
  readonly isFinal: boolean
}

export interface MailQueue {
  /** Enqueues a job. False if the queue is full or closed. */
  add(work: () => Promise<void>, onFailure: (failure: Failure) => void): boolean
  /** Resolves when no job is waiting, running or scheduled for a retry. */
  idle(): Promise<void>
  /** Stops accepting jobs and attempts the remaining ones once more until the timeout. Returns how many are left. */
  close(timeoutMs: number): Promise<number>
}

interface Job {
  readonly work: () => Promise<void>
  readonly onFailure: (failure: Failure) => void
  attempts: number
}

export function openMailQueue(options: {
  readonly retryDelaysMs: readonly number[]
  /** Whether a retry cannot succeed. */
  readonly isPermanent: (error: unknown) => boolean
}): MailQueue {
  const { retryDelaysMs, isPermanent } = options
  const waiting: Job[] = []
  const running = new Set<Job>()
  const delayed = new Map<Job, ReturnType<typeof setTimeout>>()
  let isClosed = false
  let onIdle: (() => void)[] = []

  const size = (): number => waiting.length + running.size + delayed.size

  function start(): void {
    while (running.size < mailConnectionsMax) {
      const job = waiting.shift()
      if (!job) break
      running.add(job)
      void attempt(job)
    }
    if (size() > 0) return
    const listeners = onIdle
    onIdle = []
    for (const listener of listeners) listener()
  }

  async function attempt(job: Job): Promise<void> {
    try {
      await job.work()
    } catch (error) {
      fail(job, error)
    }
    running.delete(job)
    start()
  }

  function fail(job: Job, error: unknown): void {
    const pauseMs = isClosed || isPermanent(error) ? undefined : retryDelaysMs[job.attempts]
    job.attempts += 1
    if (pauseMs !== undefined) delayed.set(job, setTimeout(() => resume(job), pauseMs).unref())
    job.onFailure({ error, attempts: job.attempts, isFinal: pauseMs === undefined })
  }

  function resume(job: Job): void {
    clearTimeout(delayed.get(job))
    delayed.delete(job)
    waiting.push(job)
    start()
  }

  const idle = (): Promise<void> =>
    size() === 0 ? Promise.resolve() : new Promise((resolve) => void onIdle.push(resolve))

  return {
    add(work, onFailure) {
      if (isClosed || size() >= mailQueueMax) return false
      waiting.push({ work, onFailure, attempts: 0 })
      // Starts in a later tick, so that the response is not delayed.
      setImmediate(start)
      return true
    },
    idle,
    async close(timeoutMs) {
      isClosed = true
      for (const job of [...delayed.keys()]) resume(job)
      let timer: ReturnType<typeof setTimeout> | undefined
      await Promise.race([idle(), new Promise<void>((resolve) => (timer = setTimeout(resolve, timeoutMs)))])
      clearTimeout(timer)
      const left = size()
      waiting.length = 0
      return left
    },
  }
}
