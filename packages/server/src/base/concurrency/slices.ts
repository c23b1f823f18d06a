/**
 * Long work in slices: between two of them the event loop serves other requests, so that the longest pause any of them
 * sees is one slice.
 */
import { eventLoopSliceMs } from '../../limits/writes.ts'

/** Gives a promise to await when the current slice is over, and undefined while it lasts. */
export type NextSlice = () => Promise<void> | undefined

/** The results of a function for each of some items, in order, in slices. */
export async function mapInSlices<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Result,
): Promise<Result[]> {
  const nextSlice = createSlices()
  const results: Result[] = []
  for (const item of items) {
    results.push(work(item))
    const pause = nextSlice()
    if (pause) await pause
  }
  return results
}

/** Begins the first slice. `elapsedMs` is monotonic. */
export function createSlices(elapsedMs: () => number = () => performance.now()): NextSlice {
  let endMs = elapsedMs() + eventLoopSliceMs
  return () => {
    if (elapsedMs() < endMs) return undefined
    return new Promise((resolve) =>
      setImmediate(() => {
        endMs = elapsedMs() + eventLoopSliceMs
        resolve()
      }),
    )
  }
}

/** Gives a function that says whether the slice that begins with this call is over. For work that ends there. */
export function startSlice(elapsedMs: () => number = () => performance.now()): () => boolean {
  const endMs = elapsedMs() + eventLoopSliceMs
  return () => elapsedMs() >= endMs
}
