/** Small values that a device keeps, such as unfinished uploads. Losing one is never an error. */
import type { Core } from './core.ts'
import { defaultStorage } from './session-storage.ts'

export interface LocalValues {
  get(name: string): Promise<string | null>
  /** Null removes the value. */
  set(name: string, value: string | null): Promise<void>
}

/** Values of this server, in the storage of the session. */
export function localValues(core: Core): LocalValues {
  const storage = core.options.storage ?? defaultStorage()
  const keyOf = (name: string): string => `plinth:${core.url}:${name}`
  return {
    async get(name) {
      try {
        return await storage.get(keyOf(name))
      } catch {
        return null
      }
    },
    async set(name, value) {
      try {
        await (value === null ? storage.remove(keyOf(name)) : storage.set(keyOf(name), value))
      } catch {
        // Storage is full or forbidden.
      }
    },
  }
}
