/** Values that a device keeps for one server: the session, unfinished uploads. Failing storage is never an error. */
import type { Core } from './core.ts'
import { defaultStorage } from './session-storage.ts'

export type LocalValues = ReturnType<typeof createLocalValues>

/** Values of this server, in the storage of the session. */
export function createLocalValues({ url, options }: Core) {
  const storage = options.storage ?? defaultStorage()
  const keyOf = (name: string): string => `plinth:${url}${name && `:${name}`}`
  /** One access after the other, so that none reads what an earlier one is about to replace. */
  let accesses: Promise<unknown> = Promise.resolve()
  const access = <Value>(run: () => Value | Promise<Value>): Promise<Value | undefined> => {
    accesses = accesses.then(run).catch(() => undefined)
    return accesses as Promise<Value | undefined>
  }
  return {
    storage,
    keyOf,
    get: async (name: string): Promise<string | undefined> =>
      (await access(() => storage.get(keyOf(name)))) ?? undefined,
    /** Nothing removes the value. */
    set: (name: string, value: string | null | undefined): Promise<void> =>
      access(() => (value ? storage.set(keyOf(name), value) : storage.remove(keyOf(name)))),
  }
}
