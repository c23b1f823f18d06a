/**
 * The rows of one view of a table, for a grid that shows any part of them. Rows are read in pages, and wide tables in
 * groups of columns, so that no response is large. A page is read from its neighbor's first or last row (keyset); where
 * the grid jumps far, by its offset. A bounded number of pages is kept.
 */
import { isPlinthError } from 'plinth-client'
import { mergeRows, type Row } from './row.ts'

/** Rows per page. With `previewChars` and `columnsPerGroup` a response stays under 100 kB. */
export const rowsPerPage = 40
/** 4,000 rows; the grid shows some 30 at a time. */
export const pagesKeptMax = 100
/** Pages in transit: what a screen shows, and one beside it. */
export const loadsMax = 4

/** Where a page begins or ends. */
export type Anchor =
  | { readonly kind: 'after'; readonly id: string }
  | { readonly kind: 'before'; readonly id: string }
  | { readonly kind: 'offset'; readonly offset: number }

export interface LoadedPage {
  readonly rows: readonly Row[]
  /** Whether more rows follow; null where the response does not say. */
  readonly hasMore: boolean | null
}

export interface RowSource {
  /** Whether a page can be read from a row; otherwise only by its offset. */
  readonly isKeyset: boolean
  /** Reads a page with the columns of a group. */
  load(anchor: Anchor, group: number, signal: AbortSignal): Promise<LoadedPage>
  /** Counts all rows. */
  count(signal: AbortSignal): Promise<number>
}

interface Page {
  rows: readonly Row[]
  anchor: Anchor
  /** Groups of columns that are there. */
  readonly groups: Set<number>
  /** Read before the last change. It is shown until it has been read again. */
  isStale: boolean
  /** When it was last shown, as a counter. */
  usedAt: number
}

interface Load {
  readonly page: number
  readonly group: number
  readonly controller: AbortController
}

export interface RowWindow {
  readonly first: number
  readonly last: number
  /** Groups of columns in view. */
  readonly groups: readonly number[]
}

export class RowCache {
  /** Raised with every change; identifies a snapshot for `useSyncExternalStore`. */
  version = 0
  /** Null until it is known. */
  total: number | null = null
  error: unknown = null
  /** Whether the first page has arrived. */
  isReady = false

  readonly #source: RowSource
  readonly #pages = new Map<number, Page>()
  readonly #loads: Load[] = []
  readonly #listeners = new Set<() => void>()
  #counting: AbortController | null = null
  #window: RowWindow = { first: 0, last: rowsPerPage - 1, groups: [0] }
  /** One past the last row that is known to exist. */
  #end = 0
  /** Whether `#end` is the end. */
  #isEnd = false
  #clock = 0

  constructor(source: RowSource) {
    this.#source = source
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  snapshot = (): number => this.version

  /** How many rows the grid has room for. */
  get length(): number {
    if (this.#isEnd) return this.#end
    return Math.max(this.total ?? 0, this.#end + (this.isReady ? 1 : 0))
  }

  rowAt(index: number): Row | undefined {
    return this.#pages.get(Math.floor(index / rowsPerPage))?.rows[index % rowsPerPage]
  }

  /** Whether a column of the group is there for the row. */
  hasGroup(index: number, group: number): boolean {
    return this.#pages.get(Math.floor(index / rowsPerPage))?.groups.has(group) ?? false
  }

  /** The index of a row that is in the cache; -1 otherwise. */
  indexOf(id: string): number {
    for (const [at, { rows }] of this.#pages) {
      const index = rows.findIndex((row) => row.id === id)
      if (index >= 0) return at * rowsPerPage + index
    }
    return -1
  }

  /** Requests what the window shows and is not there yet, and abandons requests for what it does not show. */
  show(window: RowWindow): void {
    this.#window = window
    this.#work()
  }

  /** Everything is read again; what is shown stays until then. */
  invalidate(): void {
    for (const page of this.#pages.values()) page.isStale = true
    for (const { controller } of this.#loads.splice(0)) controller.abort()
    this.#counting?.abort()
    this.#counting = null
    this.#isEnd = false
    this.error = null
    this.#count()
    this.#work()
    this.#changed()
  }

  /** Replaces fields of a row that was written. */
  patch(row: Row): void {
    for (const page of this.#pages.values()) {
      const index = page.rows.findIndex(({ id }) => id === row.id)
      if (index < 0) continue
      const before = page.rows[index] as Row
      const cut = new Set([...before.cut].filter((name) => !(name in row.values)))
      const merged = { ...mergeRows({ ...before, cut }, row), version: row.version }
      page.rows = page.rows.with(index, merged)
    }
    this.#changed()
  }

  close(): void {
    for (const { controller } of this.#loads.splice(0)) controller.abort()
    this.#counting?.abort()
    this.#listeners.clear()
  }

  #changed(): void {
    this.version += 1
    for (const listener of this.#listeners) listener()
  }

  #work(): void {
    // What failed is requested again when someone wants it, not in a loop.
    if (this.error !== null) return
    const { first, last, groups } = this.#window
    const pages = pageRange(first, last)
    // A page beside the window makes slow scrolling seamless; it is not worth interrupting for.
    const near = [...pages, (pages.at(-1) ?? 0) + 1].filter((page) => page * rowsPerPage < Math.max(this.length, 1))
    for (const load of [...this.#loads]) if (!near.includes(load.page)) this.#abandon(load)
    for (const page of near) {
      const kept = this.#pages.get(page)
      if (kept) kept.usedAt = ++this.#clock
      for (const group of groups) {
        const isThere = kept?.groups.has(group) && !kept.isStale
        const isLoading = this.#loads.some((load) => load.page === page && load.group === group)
        // Further groups of columns are added to the rows that the first one has found.
        const isFirst = !kept && this.#loads.some((load) => load.page === page)
        if (!isThere && !isLoading && !isFirst && this.#loads.length < loadsMax) void this.#load(page, group)
      }
    }
    if (this.total === null && this.#counting === null) this.#count()
  }

  #abandon(load: Load): void {
    load.controller.abort()
    this.#loads.splice(this.#loads.indexOf(load), 1)
  }

  #anchorOf(page: number): Anchor {
    const kept = this.#pages.get(page)
    if (kept && !kept.isStale) return kept.anchor
    if (!this.#source.isKeyset) return { kind: 'offset', offset: page * rowsPerPage }
    const [before, after] = [this.#pages.get(page - 1), this.#pages.get(page + 1)]
    const lastBefore = before && !before.isStale && before.rows.length === rowsPerPage ? before.rows.at(-1) : undefined
    if (lastBefore) return { kind: 'after', id: lastBefore.id }
    const firstAfter = after && !after.isStale ? after.rows[0] : undefined
    if (firstAfter && page > 0) return { kind: 'before', id: firstAfter.id }
    return page === 0 ? { kind: 'after', id: '' } : { kind: 'offset', offset: page * rowsPerPage }
  }

  async #load(page: number, group: number): Promise<void> {
    const load: Load = { page, group, controller: new AbortController() }
    this.#loads.push(load)
    const { signal } = load.controller
    let anchor = this.#anchorOf(page)
    try {
      let loaded: LoadedPage
      try {
        loaded = await this.#source.load(anchor, group, signal)
      } catch (error) {
        // The row beside it has been deleted meanwhile.
        if (anchor.kind === 'offset' || !isPlinthError(error, 'invalid-input')) throw error
        anchor = { kind: 'offset', offset: page * rowsPerPage }
        loaded = await this.#source.load(anchor, group, signal)
      }
      if (!signal.aborted) this.#add(page, group, anchor, loaded)
    } catch (error) {
      if (!signal.aborted) this.error = error
    } finally {
      if (this.#loads.includes(load)) this.#loads.splice(this.#loads.indexOf(load), 1)
      if (!signal.aborted) {
        this.#changed()
        if (this.error === null) this.#work()
      }
    }
  }

  #add(at: number, group: number, anchor: Anchor, { rows, hasMore }: LoadedPage): void {
    this.error = null
    this.isReady = true
    const kept = this.#pages.get(at)
    if (kept && !kept.isStale) {
      const byId = new Map(rows.map((row) => [row.id, row]))
      kept.rows = kept.rows.map((row) => {
        const other = byId.get(row.id)
        return other ? mergeRows(row, other) : row
      })
      kept.groups.add(group)
      return
    }
    this.#pages.set(at, { rows, anchor, groups: new Set([group]), isStale: false, usedAt: ++this.#clock })
    const end = at * rowsPerPage + rows.length
    const isLast = anchor.kind === 'before' ? false : hasMore === null ? rows.length < rowsPerPage : !hasMore
    if (isLast) {
      this.#end = end
      this.#isEnd = true
      this.total = end
      for (const page of this.#pages.keys()) if (page > at) this.#pages.delete(page)
    } else if (end > this.#end || this.#isEnd) {
      this.#end = Math.max(this.#end, end)
      this.#isEnd = false
    }
    this.#evict()
  }

  #evict(): void {
    if (this.#pages.size <= pagesKeptMax) return
    const oldest = [...this.#pages].sort(([, one], [, other]) => one.usedAt - other.usedAt)
    for (const [at] of oldest.slice(0, this.#pages.size - pagesKeptMax)) this.#pages.delete(at)
  }

  #count(): void {
    const controller = new AbortController()
    this.#counting = controller
    this.#source.count(controller.signal).then(
      (total) => {
        if (controller.signal.aborted) return
        this.total = total
        this.#changed()
      },
      // A count that takes too long leaves the total unknown; the rows can be read without it.
      () => {},
    )
  }
}

const pageRange = (first: number, last: number): number[] => {
  const [from, to] = [Math.floor(Math.max(0, first) / rowsPerPage), Math.floor(Math.max(0, last) / rowsPerPage)]
  return Array.from({ length: to - from + 1 }, (_, at) => from + at)
}
