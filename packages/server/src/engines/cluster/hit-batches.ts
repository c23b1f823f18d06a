/**
 * Counts the hits of one key with one command at a time: those that arrive in a tick, or while a command is on its way,
 * share the next one. Requests of one address arrive together, and the busier a node is, the more of them share.
 */
import type { Hit } from './cluster.ts'

interface Batch {
  total: number
  readonly counted: PromiseWithResolvers<Hit>
}

/** Each hit gets the count that it would get alone, in the order of the calls. `count` counts several at once. */
export function createHitBatches(
  count: (key: string, windowMs: number, by: number) => Promise<Hit>,
): (key: string, windowMs: number, by?: number) => Promise<Hit> {
  /** The hits that wait for the next command, by their key and window; null while none do and one is on its way. */
  const waiting = new Map<string, Batch | null>()

  function take(id: string): Batch | null {
    const batch = waiting.get(id) ?? null
    if (batch) waiting.set(id, null)
    else waiting.delete(id)
    return batch
  }

  /** Sends one command after the other until no hit waits. */
  async function countAll(id: string, key: string, windowMs: number): Promise<void> {
    for (let batch = take(id); batch; batch = take(id)) {
      try {
        batch.counted.resolve(await count(key, windowMs, batch.total))
      } catch (error) {
        batch.counted.reject(error)
        // They have waited as long: a further attempt could double that.
        take(id)?.counted.reject(error)
      }
    }
  }

  function open(id: string, key: string, windowMs: number): Batch {
    const batch = { total: 0, counted: Promise.withResolvers<Hit>() }
    if (!waiting.has(id)) setImmediate(() => void countAll(id, key, windowMs))
    waiting.set(id, batch)
    return batch
  }

  return async (key, windowMs, by = 1) => {
    const id = `${windowMs} ${key}`
    const batch = waiting.get(id) ?? open(id, key, windowMs)
    batch.total += by
    const upToThis = batch.total
    const { count: all, resetMs } = await batch.counted.promise
    return { count: all - batch.total + upToThis, resetMs }
  }
}
