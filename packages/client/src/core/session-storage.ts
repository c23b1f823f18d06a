/** Where a session is kept between page loads. */

import type { SessionStorage } from '../types/options.ts'

export type { SessionStorage } from '../types/options.ts'

/** Keeps sessions as long as the process or page lives. */
export function memoryStorage(): SessionStorage {
  const values = new Map<string, string>()
  return {
    get: (key) => values.get(key) ?? null,
    set: (key, value) => {
      values.set(key, value)
    },
    remove: (key) => {
      values.delete(key)
    },
  }
}

/** `localStorage`, shared by the tabs of an origin. Where the browser forbids or has no room for it, memory. */
export function browserStorage(): SessionStorage {
  const memory = memoryStorage()
  return {
    get: (key) => memory.get(key) ?? localStorage.getItem(key),
    set(key, value) {
      try {
        localStorage.setItem(key, value)
        memory.remove(key)
      } catch {
        memory.set(key, value)
      }
    },
    remove(key) {
      memory.remove(key)
      localStorage.removeItem(key)
    },
    watch(key, listener) {
      const onStorage = (event: StorageEvent): void => {
        if (event.key === key || event.key === null) listener(event.key && event.newValue)
      }
      addEventListener('storage', onStorage)
      return () => removeEventListener('storage', onStorage)
    },
  }
}

/** `localStorage` where there is one that may be read, otherwise memory. */
export function defaultStorage(): SessionStorage {
  try {
    if (typeof addEventListener === 'function' && localStorage.getItem('') !== undefined) return browserStorage()
  } catch {
    // Storage is forbidden, as in some private modes.
  }
  return memoryStorage()
}
