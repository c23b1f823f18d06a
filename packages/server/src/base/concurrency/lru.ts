/**
 * An LRU cache with two generations: used entries move to the young one, and when that is full the old one is evicted.
 * A hit costs one look-up, where a strict LRU order would cost a delete and an insert.
 */

export interface Lru<K, V> {
  get(key: K): V | undefined
  set(key: K, value: V): void
  delete(key: K): void
  clear(): void
  values(): IterableIterator<V>
}

/**
 * Keeps at most `entriesMax` entries, and at least the most recently used half. `onEvict` is called for entries that
 * are evicted or replaced, not for deleted ones.
 */
export function createLru<K, V>(entriesMax: number, onEvict?: (value: V, key: K) => void): Lru<K, V> {
  const generationMax = Math.max(1, entriesMax >> 1)
  let young = new Map<K, V>()
  let old = new Map<K, V>()

  function put(key: K, value: V): void {
    if (young.size >= generationMax) {
      if (onEvict) for (const [gone, last] of old) onEvict(last, gone)
      old = young
      young = new Map()
    }
    young.set(key, value)
  }

  return {
    get(key) {
      const value = young.get(key)
      if (value !== undefined) return value
      const older = old.get(key)
      if (older === undefined) return undefined
      old.delete(key)
      put(key, older)
      return older
    },
    set(key, value) {
      const known = young.get(key) ?? old.get(key)
      young.delete(key)
      old.delete(key)
      put(key, value)
      if (known !== undefined && known !== value) onEvict?.(known, key)
    },
    delete(key) {
      young.delete(key)
      old.delete(key)
    },
    clear() {
      young.clear()
      old.clear()
    },
    *values() {
      yield* young.values()
      yield* old.values()
    },
  }
}
