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

export interface SliceOptions {
  /** How long a slice lasts. */
  readonly sliceMs?: number
  /** A monotonic clock. */
  readonly elapsedMs?: () => number
}

/** Begins the first slice. */
export function createSlices(options: SliceOptions = {}): NextSlice {
  let isOver = startSlice(options)
  return () => {
    if (!isOver()) return undefined
    return new Promise((resolve) =>
      setImmediate(() => {
        isOver = startSlice(options)
        resolve()
      }),
    )
  }
}

/** Gives a function that returns whether the slice that begins with this call is over, for work that ends there. */
export function startSlice({
  sliceMs = eventLoopSliceMs,
  elapsedMs = () => performance.now(),
}: SliceOptions = {}): () => boolean {
  const endMs = elapsedMs() + sliceMs
  return () => elapsedMs() >= endMs
}
