/**
 * Adaptive batching: a batch starts once a round of the event loop has added nothing to it. Its size follows the load:
 * a lone item starts at the end of its tick, and under load one batch carries what would otherwise be several.
 */

export interface AdaptiveBatchOptions {
  /** Number of items that wait. */
  readonly size: () => number
  /** Size at which a batch does not wait for more. */
  readonly sizeMax: number
  /** How long a batch that keeps growing waits, in milliseconds. */
  readonly waitMs: number
  /** A monotonic clock; the process's by default. */
  readonly elapsedMs?: (() => number) | undefined
  /** Calls back in the next round of the event loop. */
  readonly nextRound?: (then: () => void) => void
}

/** Calls `start` in a later round: the first in which the batch has stopped growing, is full or has waited enough. */
export function startAdaptively(
  { size, sizeMax, waitMs, elapsedMs = () => performance.now(), nextRound = setImmediate }: AdaptiveBatchOptions,
  start: () => void,
): void {
  const endMs = elapsedMs() + waitMs
  let before = size()
  const check = (): void => {
    const now = size()
    if (now > before && now < sizeMax && elapsedMs() < endMs) {
      before = now
      nextRound(check)
    } else start()
  }
  nextRound(check)
}
