/** Turns at a database: so many at once, so many waiting behind them, none for longer than is worth it. */
import { EngineError } from '../sql/error.ts'

export interface SlotQueue {
  /** Runs the work when its turn comes, first come, first served. Throws `EngineError` `busy`. */
  enter<T>(work: () => Promise<T>): Promise<T>
}

export function createSlotQueue(bounds: { running: number; waiting: number; waitMs: number }): SlotQueue {
  const queue = new Set<() => void>()
  let active = 0

  /** Resolves with the turn of somebody who has ended theirs. */
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
        reject(new EngineError('busy', 'A statement waited too long for its turn'))
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
        // The turn is handed on, so nobody who comes meanwhile gets ahead.
        if (next) next()
        else active -= 1
      }
    },
  }
}
