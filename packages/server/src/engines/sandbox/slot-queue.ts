/** Semaphore with a bounded FIFO queue: so many tasks run, so many wait, none waits longer than `waitMs`. */
import { EngineError } from '../sql/error.ts'

export interface SlotQueue {
  /** Runs `work` once a slot is free, first come, first served. Throws `EngineError` `busy`. */
  enter<T>(work: () => Promise<T>): Promise<T>
}

export function createSlotQueue(bounds: { running: number; waiting: number; waitMs: number }): SlotQueue {
  const queue = new Set<() => void>()
  let active = 0

  /** Resolves with the slot of a finished task. */
  function wait(): Promise<void> {
    if (queue.size >= bounds.waiting) throw new EngineError('busy', 'Too many statements are waiting')
    return new Promise((resolve, reject) => {
      const begin = (): void => {
        clearTimeout(timer)
        queue.delete(begin)
        resolve()
      }
      const timer = setTimeout(() => {
        queue.delete(begin)
        reject(new EngineError('busy', 'A statement waited too long for a free slot'))
      }, bounds.waitMs)
      queue.add(begin)
    })
  }

  return {
    async enter(work) {
      if (active < bounds.running) active += 1
      else await wait()
      try {
        return await work()
      } finally {
        const [next] = queue
        // The slot passes to the next waiter, so a newcomer cannot overtake it.
        if (next) next()
        else active -= 1
      }
    },
  }
}
