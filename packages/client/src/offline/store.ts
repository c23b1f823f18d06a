/** Where the queue and the lists are kept: texts by key, in IndexedDB or in the storage of the client. */
import type { Core } from '../core/core.ts'
import { memoryStorage } from '../core/session-storage.ts'
import type { SessionStorage } from '../types/options.ts'

export interface Store {
  /** The values whose keys begin with `prefix`, in the order of the keys. */
  list(prefix: string): Promise<[key: string, text: string][]>
  /**
   * Sets a value, null to remove it. With `expected`, only where the value still is that one. Resolves when the change
   * is durable, with whether it was made.
   */
  set(key: string, text: string | null, expected?: string): Promise<boolean>
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
      const range = IDBKeyRange.bound(prefix, `${prefix}\uffff`)
      let keys: IDBRequest<IDBValidKey[]> | undefined
      let texts: IDBRequest<unknown[]> | undefined
      await run('readonly', (values) => {
        keys = values.getAllKeys(range)
        texts = values.getAll(range)
      })
      return (keys as NonNullable<typeof keys>).result.map((key, at) => [`${key}`, `${texts?.result[at]}`])
    },
    async set(key, text, expected) {
      let isSet = false
      await run('readwrite', (values) => {
        const reading = values.get(key)
        reading.onsuccess = () => {
          isSet = expected === undefined || reading.result === expected
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
  type Texts = Map<string, string>
  let known: Texts | undefined
  let last: Promise<unknown> = Promise.resolve()
  const pathOf = (key: string): string => `${name}:${key}`
  const setKeys = (keys: readonly string[]) => storage.set(name, JSON.stringify(keys))
  /** What is stored; read again where that failed. */
  const read = async (): Promise<Texts> => {
    if (known) return known
    const texts: Texts = new Map()
    for (const key of parseKeys(await storage.get(name))) {
      const text = await storage.get(pathOf(key))
      if (text !== null) texts.set(key, text)
    }
    known = texts
    return texts
  }
  const inOrder = <Result>(work: (texts: Texts) => Result | Promise<Result>): Promise<Result> => {
    const result = last.then(read).then(work)
    last = result.catch(() => undefined)
    return result
  }
  return {
    list: (prefix) => inOrder((texts) => [...texts].filter(([key]) => key.startsWith(prefix)).sort()),
    set: (key, text, expected) =>
      inOrder(async (texts) => {
        if (expected !== undefined && texts.get(key) !== expected) return false
        // A value that is not listed does not exist: the list makes both durable.
        if (text === null) {
          await setKeys([...texts.keys()].filter((one) => one !== key))
          texts.delete(key)
          await storage.remove(pathOf(key))
        } else {
          await storage.set(pathOf(key), text)
          if (!texts.has(key)) await setKeys([...texts.keys(), key])
          texts.set(key, text)
        }
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
