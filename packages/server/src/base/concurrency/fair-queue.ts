/**
 * A bounded queue in front of a few slots for expensive work. Round robin over callers: one with many entries delays
 * another by one entry per slot, not by all of them. While entries wait too long, the queue is kept short ("controlled
 * delay"): what has waited longer than its client is served for nothing.
 */
import { RoundRobin } from './round-robin.ts'

export interface FairQueue {
  /**
   * Runs `work` once a slot is free, synchronously if one is. Throws `QueueFullError` at a bound, `QueueTimeoutError`
   * where it has waited too long, and the reason of `signal`, if there is one, if it aborts while waiting, which
   * removes the entry.
   */
  enter<T>(caller: string, signal: AbortSignal | null, work: () => Promise<T>): Promise<T>
}

export interface FairQueueBounds {
  /** Concurrent slots. */
  readonly running: number
  readonly waiting: number
  readonly waitingPerCaller: number
  /** Null if the entries' signals, or the number that waits, bound the wait. */
  readonly waitMs: number | null
  readonly standing?: Standing
}

/**
 * A queue in which every entry has waited longer than `targetMs` for `afterMs` is no burst (as in CoDel, RFC 8289).
 * From then on, new entries wait `waitMs` at most, and a caller has at most `waitingPerCaller` of them.
 */
export interface Standing {
  readonly targetMs: number
  readonly afterMs: number
  readonly waitMs: number
  readonly waitingPerCaller: number
}

/** The queue is full, for this caller or for all. */
export class QueueFullError extends Error {
  constructor(readonly bound: 'caller' | 'all') {
    super('The queue is full')
    this.name = 'QueueFullError'
  }
}

export class QueueTimeoutError extends Error {
  constructor() {
    super('The wait in the queue was too long')
    this.name = 'QueueTimeoutError'
  }
}

/** The bounds of a queue, which are tighter while every entry waits too long. */
export class ControlledDelay {
  readonly #bounds: Omit<FairQueueBounds, 'running'>
  /** When the queue was last empty, or an entry began in time. */
  #goodAtMs = 0

  constructor(bounds: Omit<FairQueueBounds, 'running'>) {
    this.#bounds = bounds
  }

  /**
   * How long an entry may wait that is added to `size` others, of which `ofCaller` are its caller's. Throws
   * `QueueFullError`.
   */
  add(size: number, ofCaller: number, nowMs: number): number | null {
    const { waiting, waitingPerCaller, waitMs, standing } = this.#bounds
    if (size === 0) this.#goodAtMs = nowMs
    if (ofCaller >= waitingPerCaller) throw new QueueFullError('caller')
    if (size >= waiting) throw new QueueFullError('all')
    if (!standing || nowMs - this.#goodAtMs <= standing.afterMs) return waitMs
    if (ofCaller >= standing.waitingPerCaller) throw new QueueFullError('all')
    return standing.waitMs
  }

  /** An entry that was added at `addedAtMs` begins. */
  begin(addedAtMs: number, nowMs: number): void {
    if (nowMs - addedAtMs <= (this.#bounds.standing?.targetMs ?? 0)) this.#goodAtMs = nowMs
  }
}

/** `elapsedMs` is monotonic. */
export function createFairQueue(bounds: FairQueueBounds, elapsedMs = (): number => performance.now()): FairQueue {
  const waiting = new RoundRobin<() => void>()
  const delay = new ControlledDelay(bounds)
  let running = 0

  /** Resolves with a slot. */
  function wait(caller: string, signal: AbortSignal | null): Promise<void> {
    const addedAtMs = elapsedMs()
    const waitMs = delay.add(waiting.size, waiting.sizeOf(caller), addedAtMs)
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
        waiting.delete(caller, begin)
      }
      const begin = (): void => {
        leave()
        delay.begin(addedAtMs, elapsedMs())
        resolve()
      }
      const onAbort = (): void => {
        leave()
        reject(signal?.reason)
      }
      const onTimeout = (): void => {
        leave()
        reject(new QueueTimeoutError())
      }
      const timer = waitMs === null ? undefined : setTimeout(onTimeout, waitMs)
      signal?.addEventListener('abort', onAbort)
      waiting.add(caller, begin)
    })
  }

  /** Passes the slot to the first entry of the next caller. */
  function passOn(): void {
    const begin = waiting.shift()
    if (begin) begin()
    else running -= 1
  }

  return {
    async enter(caller, signal, work) {
      signal?.throwIfAborted()
      if (running < bounds.running) running += 1
      else await wait(caller, signal)
      try {
        return await work()
      } finally {
        passOn()
      }
    },
  }
}
