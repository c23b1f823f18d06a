/**
 * Deduplicates work whose result must be as new as the call: a call joins an execution that has not begun yet, and
 * never one that has, so that at most two of one key are pending, however many calls there are.
 */

export interface Coalescer<T> {
  /** Runs `work`, or joins the execution of this key that is about to begin. */
  run(key: string, work: () => Promise<T>): Promise<T>
}

interface Lane<T> {
  /** Resolves when the execution in progress has ended, in whatever way. */
  readonly ended: Promise<unknown>
  /** The one that begins then. */
  next: Promise<T> | null
}

export function createCoalescer<T>(): Coalescer<T> {
  const lanes = new Map<string, Lane<T>>()

  async function start(key: string, work: () => Promise<T>): Promise<T> {
    const end = Promise.withResolvers<void>()
    const lane: Lane<T> = { ended: end.promise, next: null }
    lanes.set(key, lane)
    try {
      return await work()
    } finally {
      if (!lane.next) lanes.delete(key)
      end.resolve()
    }
  }

  return {
    run(key, work) {
      const lane = lanes.get(key)
      if (!lane) return start(key, work)
      lane.next ??= lane.ended.then(() => start(key, work))
      return lane.next
    },
  }
}
