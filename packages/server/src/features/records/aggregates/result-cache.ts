/** Results of aggregates, kept until the next write of their tables: the least recently used ones are evicted. */
import { aggregateCachedBytesMax, aggregatesCachedBytesMax, aggregatesCachedMax } from '../../../limits/api.ts'
import type { Stamp } from './freshness.ts'

export interface CachedResult {
  /** The response as JSON. */
  readonly text: string
  /** A moment before the result was computed. */
  readonly stamp: Stamp
}

export interface ResultCache {
  get(key: string): CachedResult | undefined
  set(key: string, result: CachedResult): void
  delete(key: string): void
  clear(): void
}

/** Bytes of an entry besides its text: the key and the stamp. */
const entryOverheadBytes = 300
/** A text has up to two bytes per character in memory. */
const bytesOf = ({ text }: CachedResult): number => 2 * text.length + entryOverheadBytes

export function createResultCache(entriesMax = aggregatesCachedMax, bytesMax = aggregatesCachedBytesMax): ResultCache {
  /** Least recently used first. */
  const results = new Map<string, CachedResult>()
  let bytes = 0

  function remove(key: string): void {
    const known = results.get(key)
    if (!known) return
    results.delete(key)
    bytes -= bytesOf(known)
  }

  return {
    get(key) {
      const found = results.get(key)
      if (!found) return undefined
      results.delete(key)
      results.set(key, found)
      return found
    },
    set(key, result) {
      remove(key)
      const size = bytesOf(result)
      if (size > Math.min(aggregateCachedBytesMax, bytesMax)) return
      results.set(key, result)
      bytes += size
      for (const oldest of results.keys()) {
        if (results.size <= entriesMax && bytes <= bytesMax) break
        remove(oldest)
      }
    },
    delete: remove,
    clear() {
      results.clear()
      bytes = 0
    },
  }
}
