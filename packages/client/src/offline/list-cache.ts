/** The rows of live lists at the last visit, shown until the lists are read again. */

import type { Row } from '../records/query.ts'
import { findVersion, setVersions } from '../records/versions.ts'
import type { Store } from './store.ts'

/** The rows of a list up to its limit. */
export interface ListRows {
  readonly rows: readonly Row[]
  /** Whether the list has no more rows. */
  readonly isComplete: boolean
}

/** What live lists use. */
export interface ListCache {
  get(key: string): Promise<ListRows | undefined>
  /** Keeps what `take` returns a little later; undefined where there is nothing to keep. */
  save(key: string, take: () => ListRows | undefined): void
  remove(key: string): void
}

/** Characters of JSON that the lists of a user may have; beyond, the least recently saved ones are removed. */
const cacheCharsMax = 5 * 1024 * 1024
/** How long changes of a list are collected before it is kept, in milliseconds. */
const saveDelayMs = 1_000

const root = 'list|'

export class UserLists {
  readonly #store: Store
  readonly #prefix: string
  /** Least recently saved first; those of earlier visits in the order of their keys. */
  readonly #texts = new Map<string, string>()
  readonly #unsaved = new Map<string, () => ListRows | undefined>()
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(store: Store, user: string) {
    this.#store = store
    this.#prefix = `${root}${encodeURIComponent(user)}|`
  }

  /** Reads the lists of the user, and removes those of all others. */
  async load(): Promise<void> {
    for (const [key, text] of await this.#store.list(root))
      if (key.startsWith(this.#prefix)) this.#keep(key, text)
      else this.#write(key, null)
    this.#trim()
  }

  get(key: string): ListRows | undefined {
    try {
      const { rows, versions, isComplete } = JSON.parse(this.#texts.get(this.#prefix + key) ?? '')
      return rows.every((row: Row) => row.id) ? { rows: setVersions(rows, versions), isComplete } : undefined
    } catch {
      // Nothing is kept, or what is kept is damaged.
      return undefined
    }
  }

  save(key: string, take: () => ListRows | undefined): void {
    this.#unsaved.set(this.#prefix + key, take)
    this.#timer ??= setTimeout(() => this.#saveAll(), saveDelayMs)
  }

  remove(key: string): void {
    this.#unsaved.delete(this.#prefix + key)
    this.#drop(this.#prefix + key)
  }

  /** Forgets the lists in memory; the stored ones stay for the next start. */
  leave(): void {
    clearTimeout(this.#timer)
    this.#unsaved.clear()
    this.#texts.clear()
  }

  #saveAll(): void {
    this.#timer = undefined
    for (const [key, take] of this.#unsaved) {
      const { rows, isComplete } = take() ?? {}
      if (!rows) continue
      const versions = rows.map((row) => findVersion(row) ?? null)
      const text = JSON.stringify({ rows, versions, isComplete })
      this.#keep(key, text)
      this.#write(key, text)
    }
    this.#unsaved.clear()
    this.#trim()
  }

  #keep(key: string, text: string): void {
    this.#texts.delete(key)
    this.#texts.set(key, text)
  }

  #trim(): void {
    let chars = 0
    for (const [key, text] of [...this.#texts].reverse()) {
      chars += text.length
      if (chars > cacheCharsMax) this.#drop(key)
    }
  }

  #drop(key: string): void {
    if (this.#texts.delete(key)) this.#write(key, null)
  }

  /** A list that cannot be kept is read again at the next start. */
  #write(key: string, text: string | null): void {
    this.#store.set(key, text).catch(() => undefined)
  }
}
