/** Where the queue and the lists are kept: texts by key, in IndexedDB or in the storage of the client. */
import type { Core } from '../core/core.ts'
import { memoryStorage } from '../core/session-storage.ts'

/** What a text becomes. The same text changes nothing, and neither does an error. */
type Work = (text: string | null | undefined) => string

/** Changes the text under a key, one change after the other. Resolves with the new text when it is durable. */
type Change = (key: string, work: Work) => Promise<string>

export interface Store {
  readonly change: Change
  /** Characters that a text may have. */
  readonly charsMax: number
}

/** Of an IndexedDB. */
const databaseCharsMax = 5 * 1024 * 1024
/** Of another storage: rows of `AsyncStorage` on Android have at most 2 MB, and a character up to three bytes. */
const storageCharsMax = 640 * 1024

const table = 'values'

/** Opens the database for each change: browsers close those of pages in the background. */
const changeIn = (name: string, key: string, work: Work): Promise<string> =>
  new Promise((resolve, reject) => {
    const opening = indexedDB.open(name)
    opening.onupgradeneeded = () => opening.result.createObjectStore(table)
    opening.onerror = () => reject(opening.error)
    opening.onsuccess = () => {
      const transaction = opening.result.transaction(table, 'readwrite', { durability: 'strict' })
      const values = transaction.objectStore(table)
      const reading = values.get(key)
      let text: string
      reading.onsuccess = () => {
        try {
          text = work(reading.result)
          if (text !== reading.result) values.put(text, key)
        } catch (error) {
          reject(error)
        }
      }
      transaction.oncomplete = () => resolve(text)
      transaction.onabort = () => reject(transaction.error)
      // When the transaction has ended.
      opening.result.close()
    }
  })

/** IndexedDB where it works, otherwise the storage of the client, otherwise memory. */
export async function openStore({ options, url }: Core): Promise<Store> {
  const name = `plinth:${url}:offline`
  const change: Change = (key, work) => changeIn(name, key, work)
  try {
    await change('', () => '')
    return { change, charsMax: databaseCharsMax }
  } catch {
    const storage = options.storage ?? memoryStorage()
    let last: Promise<unknown> = Promise.resolve()
    return {
      change(key, work) {
        const path = `${name}:${key}`
        const changed = last.then(async () => {
          const before = await storage.get(path)
          const text = work(before)
          if (text !== before) await storage.set(path, text)
          return text
        })
        last = changed.catch(() => undefined)
        return changed
      },
      charsMax: storageCharsMax,
    }
  }
}
