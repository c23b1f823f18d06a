/**
 * Counts the hits of busy keys later, several with one command: while a key is far below its limit, and its count was
 * read a moment ago, a hit is allowed without waiting for the shared counter. A node has at most a hundredth of a limit
 * uncounted, and nothing once half of the limit is reached.
 */
import { createLru } from '../../base/concurrency/lru.ts'
import { deferredHitsKeysMax, deferredHitsMs, deferredHitsShare, knownHitsMs } from '../../limits/redis.ts'
import type { Hit } from './cluster.ts'

export interface DeferredHitsOptions {
  /** Counts hits of all nodes. */
  readonly count: (key: string, windowMs: number, by: number) => Promise<Hit>
  /** Whether the shared counter is available, as far as is known. */
  readonly isAvailable: () => boolean
  /** Calls back after `deferredHitsMs`. */
  readonly later: (run: () => void) => void
  /** Monotonic milliseconds. */
  readonly now: () => number
}

/** What is known of the counter of a key. */
interface Known {
  count: number
  readAtMs: number
  windowEndMs: number
  /** Hits that the next command counts. */
  waiting: number
  /** Hits whose command has not been answered. */
  sent: number
}

export const systemTimer = {
  later: (run: () => void) => void setTimeout(run, deferredHitsMs),
  now: () => performance.now(),
}

/** `limit` is the number of hits above which the caller refuses; without it, each hit waits for its count. */
export function createDeferredHits({ count, isAvailable, later, now }: DeferredHitsOptions) {
  const keys = createLru<string, Known>(deferredHitsKeysMax)

  function knownOf(id: string): Known {
    let known = keys.get(id)
    if (!known) {
      known = { count: 0, readAtMs: Number.NEGATIVE_INFINITY, windowEndMs: 0, waiting: 0, sent: 0 }
      keys.set(id, known)
    }
    return known
  }

  /** Counts hits, and those that wait. */
  async function countNow(known: Known, key: string, windowMs: number, by: number): Promise<Hit> {
    const sent = known.waiting
    known.waiting = 0
    known.sent += sent
    try {
      const hit = await count(key, windowMs, by + sent)
      const nowMs = now()
      Object.assign(known, { count: hit.count, readAtMs: nowMs, windowEndMs: nowMs + hit.resetMs })
      return hit
    } catch (error) {
      known.readAtMs = Number.NEGATIVE_INFINITY
      throw error
    } finally {
      known.sent -= sent
    }
  }

  /** The callers of these hits have been answered: if they cannot be counted, the next hit fails. */
  const countWaiting = (known: Known, key: string, windowMs: number): void => {
    if (known.waiting > 0) countNow(known, key, windowMs, 0).catch(() => undefined)
  }

  return (key: string, windowMs: number, by = 1, limit = 0): Hit | Promise<Hit> => {
    const uncountedMax = limit * deferredHitsShare
    if (by > uncountedMax) return count(key, windowMs, by)
    const known = knownOf(`${windowMs} ${key}`)
    const nowMs = now()
    const uncounted = known.waiting + known.sent + by
    const isKnown = nowMs < known.windowEndMs && nowMs - known.readAtMs < knownHitsMs && isAvailable()
    if (!isKnown || uncounted > uncountedMax || known.count + uncounted > limit / 2)
      return countNow(known, key, windowMs, by)
    if (known.waiting === 0) later(() => countWaiting(known, key, windowMs))
    known.waiting += by
    return { count: known.count + uncounted, resetMs: known.windowEndMs - nowMs }
  }
}
