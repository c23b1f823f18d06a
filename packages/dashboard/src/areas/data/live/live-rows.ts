/**
 * What changes under a view while it is followed: rows that are shown flash with their new values, deleted ones are
 * struck and then leave, and new ones are counted until they are asked for. Bounded, however much changes.
 */

import { rowsPerPage } from '../rows/pages.ts'
import type { RowCache } from '../rows/row-cache.ts'
import type { LiveChange } from './live-socket.ts'

/** Beyond it the number is not counted on. */
export const newRowsMax = 1_000
/** Rows that flash or are struck; of more, all rows are read again. */
const markedMax = 500
/** How long a change is marked. */
const flashMs = 1_600
const struckMs = 1_600
/** Between two times that everything is read again. */
const reloadMs = 1_000

/** Of a row that has changed: which values, and how often it did. */
export interface Flash {
  readonly names: ReadonlySet<string>
  readonly count: number
}

export class LiveRows {
  readonly #cache: RowCache
  readonly #onChange: () => void
  readonly #flashes = new Map<string, Flash>()
  readonly #struck = new Set<string>()
  readonly #new = new Set<string>()
  /** Shown rows that have changed and are not read yet. */
  readonly #stale = new Set<string>()
  readonly #timers = new Set<ReturnType<typeof setTimeout>>()
  #isReading = false
  #isReloadDue = false
  #count = 0

  constructor(cache: RowCache, onChange: () => void) {
    this.#cache = cache
    this.#onChange = onChange
  }

  /** Records that are not shown yet, at most `newRowsMax`. */
  get newCount(): number {
    return this.#new.size
  }

  flashOf(id: string): Flash | undefined {
    return this.#flashes.get(id)
  }

  isStruck(id: string): boolean {
    return this.#struck.has(id)
  }

  apply(changes: readonly LiveChange[]): void {
    for (const { changeType, docId } of changes) {
      const isShown = this.#cache.indexOf(docId) >= 0
      if (changeType === 'removed') {
        this.#new.delete(docId)
        this.#stale.delete(docId)
        if (isShown) this.#strike(docId)
      } else if (isShown) this.#stale.add(docId)
      else if (changeType === 'added' && this.#new.size < newRowsMax) this.#new.add(docId)
    }
    if (this.#stale.size > markedMax || this.#struck.size > markedMax) this.reload()
    void this.#read()
    this.#onChange()
  }

  /** Reads everything again, at most once a second, and shows what is new. */
  reload(): void {
    if (this.#isReloadDue) return
    this.#isReloadDue = true
    this.#after(reloadMs, () => {
      this.#isReloadDue = false
      this.#stale.clear()
      this.showNew()
    })
  }

  showNew(): void {
    this.#new.clear()
    this.#struck.clear()
    this.#cache.invalidate()
    this.#onChange()
  }

  close(): void {
    for (const timer of this.#timers) clearTimeout(timer)
  }

  #strike(id: string): void {
    if (this.#struck.size === 0)
      this.#after(struckMs, () => {
        this.#struck.clear()
        this.#cache.invalidate()
      })
    this.#struck.add(id)
  }

  /** Reads changed rows that are shown, a page at a time. */
  async #read(): Promise<void> {
    if (this.#isReading) return
    this.#isReading = true
    try {
      while (this.#stale.size > 0) {
        const ids = [...this.#stale].slice(0, rowsPerPage)
        for (const id of ids) this.#stale.delete(id)
        const changed = await this.#cache.refresh(ids)
        for (const [id, names] of changed) this.#flash(id, names)
        this.#onChange()
      }
    } catch {
      // The grid shows why rows cannot be read, when it reads the next ones.
      this.reload()
    } finally {
      this.#isReading = false
    }
  }

  #flash(id: string, names: ReadonlySet<string>): void {
    if (names.size === 0 || this.#flashes.size >= markedMax) return
    const flash = { names, count: ++this.#count }
    this.#flashes.set(id, flash)
    this.#after(flashMs, () => {
      if (this.#flashes.get(id) === flash) this.#flashes.delete(id)
      this.#onChange()
    })
  }

  #after(ms: number, work: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      work()
    }, ms)
    this.#timers.add(timer)
  }
}
