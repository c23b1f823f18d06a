/** Where the queue and the lists are kept: texts by key, in IndexedDB or in the storage of the client. */
import type { Core } from '../core/core.ts'
import { memoryStorage } from '../core/session-storage.ts'
import type { SessionStorage } from '../types/options.ts'

export interface Store {
  /** The values whose keys begin with `prefix`, in the order of the keys. */
  list(prefix: string): Promise<[key: string, text: string][]>
  /**
   * Sets a value, null to remove it. With `expected`, only where the value still is that one; null for none. Resolves
   * when the change is durable, with whether it was made.
   */
  set(key: string, text: string | null, expected?: string | null): Promise<boolean>
  close(): void
}

const table = 'values'

function openDatabase(name: string): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open(name)
    opening.onupgradeneeded = () => opening.result.createObjectStore(table)
    opening.onerror = () => reject(opening.error)
    opening.onsuccess = () => {
      const database = opening.result
      database.onversionchange = () => database.close()
      resolve(database)
    }
  })
}

async function indexedDbStore(name: string): Promise<Store> {
  let database = await openDatabase(name)
  const begin = (mode: IDBTransactionMode): IDBTransaction =>
    database.transaction(table, mode, { durability: 'strict' })
  const run = async (mode: IDBTransactionMode, work: (values: IDBObjectStore) => void): Promise<void> => {
    let transaction: IDBTransaction
    try {
      transaction = begin(mode)
    } catch {
      // Browsers close databases of pages in the background.
      database = await openDatabase(name)
      transaction = begin(mode)
    }
    await new Promise((resolve, reject) => {
      transaction.oncomplete = resolve
      transaction.onabort = () => reject(transaction.error)
      work(transaction.objectStore(table))
    })
  }
  return {
    async list(prefix) {
      const found: [string, string][] = []
      await run('readonly', (values) => {
        const reading = values.openCursor(IDBKeyRange.bound(prefix, `${prefix}\uffff`))
        reading.onsuccess = () => {
          const cursor = reading.result
          if (!cursor) return
          found.push([cursor.key as string, String(cursor.value)])
          cursor.continue()
        }
      })
      return found
    },
    async set(key, text, expected) {
      let isSet = false
      await run('readwrite', (values) => {
        const reading = values.get(key)
        reading.onsuccess = () => {
          isSet = expected === undefined || (reading.result ?? null) === expected
          if (!isSet) return
          if (text === null) values.delete(key)
          else values.put(text, key)
        }
      })
      return isSet
    },
    close: () => database.close(),
  }
}

/** For one process at a time. The keys are kept in a value of their own, because the storage does not list them. */
function storageStore(storage: SessionStorage, name: string): Store {
  let keys: string[] | undefined
  let last: Promise<unknown> = Promise.resolve()
  const inOrder = <Result>(work: (keys: string[]) => Promise<Result>): Promise<Result> => {
    const result = last.then(async () => {
      keys ??= parseKeys(await storage.get(name))
      return work(keys)
    })
    last = result.catch(() => undefined)
    return result
  }
  const pathOf = (key: string): string => `${name}:${key}`
  const setKeys = async (next: string[]): Promise<void> => {
    await storage.set(name, JSON.stringify(next))
    keys = next
  }
  return {
    list: (prefix) =>
      inOrder(async (known) => {
        const found: [string, string][] = []
        for (const key of known.filter((one) => one.startsWith(prefix)).sort()) {
          const text = await storage.get(pathOf(key))
          if (text !== null) found.push([key, text])
        }
        return found
      }),
    set: (key, text, expected) =>
      inOrder(async (known) => {
        if (expected !== undefined && (await storage.get(pathOf(key))) !== expected) return false
        if (text === null) {
          await setKeys(known.filter((one) => one !== key))
          await storage.remove(pathOf(key))
          return true
        }
        // A value that is not listed does not exist: the list makes both durable.
        await storage.set(pathOf(key), text)
        if (!known.includes(key)) await setKeys([...known, key])
        return true
      }),
    close: () => undefined,
  }
}

function parseKeys(text: string | null): string[] {
  try {
    const keys: unknown = JSON.parse(text ?? '[]')
    return Array.isArray(keys) ? keys.filter((key) => typeof key === 'string') : []
  } catch {
    return []
  }
}

/** IndexedDB where it works, otherwise the storage of the client, otherwise memory. */
export async function openStore({ options, url }: Core): Promise<Store> {
  const name = `plinth:${url}:offline`
  try {
    return await indexedDbStore(name)
  } catch {
    return storageStore(options.storage ?? memoryStorage(), name)
  }
}
