/** A bound on work that runs beside the event loop: so many at once, so many waiting, the rest turned away. */

export interface Semaphore {
  /** Runs the work as soon as there is room, first come, first served; null when too many wait already. */
  run<T>(work: () => Promise<T>): Promise<T> | null
}

/** `running` at once, `waiting` behind them. */
export function createSemaphore({
  running,
  waiting,
}: {
  readonly running: number
  readonly waiting: number
}): Semaphore {
  const queue: (() => void)[] = []
  let active = 0

  async function run<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } finally {
      const next = queue.shift()
      // The place is handed on, so nobody who comes meanwhile gets ahead.
      if (next) next()
      else active -= 1
    }
  }

  return {
    run(work) {
      if (active < running) {
        active += 1
        return run(work)
      }
      if (queue.length >= waiting) return null
      return new Promise<void>((resolve) => queue.push(resolve)).then(() => run(work))
    },
  }
}
