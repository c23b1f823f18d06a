/** A bounded semaphore: limits concurrent work and the queue in front of it; beyond both, work is refused. */

export interface Semaphore {
  /** Runs the work once a slot is free, in FIFO order; null if the queue is full. */
  run<T>(work: () => Promise<T>): Promise<T> | null
}

/** `running`: concurrent slots; `waiting`: length of the queue. */
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
      // Passes the slot to the next in the queue, so that later calls cannot overtake.
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
