/**
 * Work on mails, beside the requests that caused it: a few jobs at once, so many waiting, failed ones tried again after
 * a pause. Lives in memory: what a crash loses is asked for again by whoever waits for the mail.
 */
import { mailConnectionsMax, mailQueueMax } from '../../../limits/users.ts'

/** How a job's attempt failed. */
export interface Failure {
  readonly error: unknown
  /** Attempts so far, this one included. */
  readonly attempts: number
  /** Whether it will not be tried again. */
  readonly isFinal: boolean
}

export interface MailQueue {
  /** False, with nothing done, when there is no room or the queue is closed. */
  add(work: () => Promise<void>, onFailure: (failure: Failure) => void): boolean
  /** Resolves when nothing waits, runs or pauses. */
  idle(): Promise<void>
  /**
   * Takes nothing more and tries what is left once more, for at most this long. Gives how many jobs were left undone.
   */
  close(timeoutMs: number): Promise<number>
}

interface Job {
  readonly work: () => Promise<void>
  readonly onFailure: (failure: Failure) => void
  attempts: number
}

export function createMailQueue(options: {
  readonly retryDelaysMs: readonly number[]
  /** Whether an error makes further attempts pointless. */
  readonly isPermanent: (error: unknown) => boolean
}): MailQueue {
  const { retryDelaysMs, isPermanent } = options
  const waiting: Job[] = []
  const running = new Set<Job>()
  const pausing = new Map<Job, ReturnType<typeof setTimeout>>()
  let isClosed = false
  let onIdle: (() => void)[] = []

  const size = (): number => waiting.length + running.size + pausing.size

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
    if (pauseMs !== undefined) pausing.set(job, setTimeout(() => resume(job), pauseMs).unref())
    job.onFailure({ error, attempts: job.attempts, isFinal: pauseMs === undefined })
  }

  function resume(job: Job): void {
    clearTimeout(pausing.get(job))
    pausing.delete(job)
    waiting.push(job)
    start()
  }

  const idle = (): Promise<void> =>
    size() === 0 ? Promise.resolve() : new Promise((resolve) => void onIdle.push(resolve))

  return {
    add(work, onFailure) {
      if (isClosed || size() >= mailQueueMax) return false
      waiting.push({ work, onFailure, attempts: 0 })
      // Not in the same turn: an answer that waits for none of this must not wait for its beginning either.
      setImmediate(start)
      return true
    },
    idle,
    async close(timeoutMs) {
      isClosed = true
      for (const job of [...pausing.keys()]) resume(job)
      let timer: ReturnType<typeof setTimeout> | undefined
      await Promise.race([idle(), new Promise<void>((resolve) => (timer = setTimeout(resolve, timeoutMs)))])
      clearTimeout(timer)
      const left = size()
      waiting.length = 0
      return left
    },
  }
}
