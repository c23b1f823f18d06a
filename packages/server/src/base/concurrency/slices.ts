/**
 * Runs long work in slices: the event loop serves other requests in between, so that the longest delay of a request is
 * one slice, however much work there is.
 */
import { eventLoopSliceMs } from '../../limits/writes.ts'

/** Returns a promise to await once the current slice is over, otherwise undefined. */
export type NextSlice = () => Promise<void> | undefined

/** `items.map(work)` in slices. */
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

/**
 * The slices of one process. All work in slices shares them: of many large requests at the same time, one runs for a
 * slice in each round of the event loop, in the order they paused. If each had slices of its own, they would run one
 * after another in the same round, and the pause would be as many slices long.
 */
export class SliceScheduler {
  readonly #elapsedMs: () => number
  readonly #waiting: (() => void)[] = []
  #isResuming = false
  /** When the slice of this round ends; null until work begins in it. */
  #endMs: number | null = null

  /** `elapsedMs` is monotonic. */
  constructor(elapsedMs: () => number = () => performance.now()) {
    this.#elapsedMs = elapsedMs
  }

  /** Whether the slice of this round is over; begins it where no work has. */
  isOver(): boolean {
    const nowMs = this.#elapsedMs()
    this.#endMs ??= this.#begin(nowMs)
    return nowMs >= this.#endMs
  }

  /** Resolves in a later round, at the start of a slice. */
  pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
      if (!this.#isResuming) setImmediate(() => this.#resume())
      this.#isResuming = true
    })
  }

  #begin(nowMs: number): number {
    const endMs = nowMs + eventLoopSliceMs
    setImmediate(() => {
      if (this.#endMs === endMs) this.#endMs = null
    })
    return endMs
  }

  #resume(): void {
    const resolve = this.#waiting.shift()
    this.#isResuming = this.#waiting.length > 0
    if (this.#isResuming) setImmediate(() => this.#resume())
    this.#endMs = this.#begin(this.#elapsedMs())
    resolve?.()
  }
}

const processSlices = new SliceScheduler()

export interface SliceOptions {
  /** How long a slice lasts; with it, the work has slices of its own and waits for no other work. */
  readonly sliceMs?: number
  /** A monotonic clock, for slices of its own. */
  readonly elapsedMs?: () => number
}

/** Begins work in slices, which it shares with all other work. */
export function createSlices(options: SliceOptions & { readonly scheduler?: SliceScheduler } = {}): NextSlice {
  if (options.sliceMs !== undefined) return createOwnSlices(options)
  const { scheduler = processSlices } = options
  return () => (scheduler.isOver() ? scheduler.pause() : undefined)
}

function createOwnSlices(options: SliceOptions): NextSlice {
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
