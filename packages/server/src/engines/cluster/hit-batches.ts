/** Counts the hits of one key in one tick with one command: requests of one address arrive together. */
import type { Hit } from './cluster.ts'

interface Batch {
  total: number
  readonly counted: Promise<Hit>
}

/** Each hit gets the count that it would get alone, in the order of the calls. `count` counts several at once. */
export function createHitBatches(
  count: (key: string, windowMs: number, by: number) => Promise<Hit>,
): (key: string, windowMs: number, by?: number) => Promise<Hit> {
  const batches = new Map<string, Batch>()

  function open(id: string, key: string, windowMs: number): Batch {
    const { promise: counted, resolve } = Promise.withResolvers<Hit>()
    const batch: Batch = { total: 0, counted }
    batches.set(id, batch)
    setImmediate(() => {
      batches.delete(id)
      resolve(count(key, windowMs, batch.total))
    })
    return batch
  }

  return async (key, windowMs, by = 1) => {
    const id = `${windowMs} ${key}`
    const batch = batches.get(id) ?? open(id, key, windowMs)
    batch.total += by
    const upToThis = batch.total
    const { count: all, resetMs } = await batch.counted
    return { count: all - batch.total + upToThis, resetMs }
  }
}
