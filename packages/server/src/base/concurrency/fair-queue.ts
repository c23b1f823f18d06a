/**
 * A bounded queue in front of a few slots for expensive work. Round robin over callers: one with many entries delays
 * another by one entry per slot, not by all of them.
 */

export interface FairQueue {
  /**
   * Runs `work` once a slot is free, synchronously if one is. Throws `QueueFullError` at a bound, `QueueTimeoutError`
   * after `waitMs` in the queue, and the reason of `signal` if it aborts while waiting, which removes the entry.
   */
  enter<T>(caller: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>
}

export interface FairQueueBounds {
  /** Concurrent slots. */
  readonly running: number
  readonly waiting: number
  readonly waitingPerCaller: number
  /** Null if the entries' signals bound the wait. */
  readonly waitMs: number | null
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

export function createFairQueue(bounds: FairQueueBounds): FairQueue {
  /** Entries by caller; the first caller is next. */
  const waiting = new Map<string, Set<() => void>>()
  let count = 0
  let running = 0

  function remove(caller: string, entry: () => void): void {
    const entries = waiting.get(caller)
    if (!entries?.delete(entry)) return
    count -= 1
    if (entries.size === 0) waiting.delete(caller)
  }

  /** Resolves with a slot. */
  function wait(caller: string, signal: AbortSignal): Promise<void> {
    const entries = waiting.get(caller) ?? new Set()
    if (entries.size >= bounds.waitingPerCaller) throw new QueueFullError('caller')
    if (count >= bounds.waiting) throw new QueueFullError('all')
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', onAbort)
        remove(caller, begin)
      }
      const begin = (): void => {
        leave()
        resolve()
      }
      const onAbort = (): void => {
        leave()
        reject(signal.reason)
      }
      const onTimeout = (): void => {
        leave()
        reject(new QueueTimeoutError())
      }
      const timer = bounds.waitMs === null ? undefined : setTimeout(onTimeout, bounds.waitMs)
      signal.addEventListener('abort', onAbort)
      entries.add(begin)
      waiting.set(caller, entries)
      count += 1
    })
  }

  /** Passes the slot to the next caller's first entry and moves that caller to the end of the round. */
  function passOn(): void {
    const [next] = waiting
    if (!next) {
      running -= 1
      return
    }
    const [caller, entries] = next
    const [begin] = entries
    waiting.delete(caller)
    if (entries.size > 1) waiting.set(caller, entries)
    begin?.()
  }

  return {
    async enter(caller, signal, work) {
      signal.throwIfAborted()
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
