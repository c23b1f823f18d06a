/**
 * The rows of one view of a table, for a grid that shows any part of them. Rows are read in pages, and wide tables in
 * groups of columns, so that no response is large. A page is read from its neighbor's first or last row (keyset); where
 * the grid jumps far, by its distance from the nearer end, and beyond `skipsMax` rows from an estimated key.
 */
import { isPlinthError } from 'plinth-client'
import { Pages, pageOf, pageRange, rowsPerPage } from './pages.ts'
import type { Row } from './row.ts'

/** Pages in transit: what a screen shows, and one beside it. */
export const loadsMax = 4
/** Rows that a page may be away from both ends to be found by counting: less than a second in an index. */
export const skipsMax = 5_000_000

/** Where a page begins or ends. */
export type Anchor =
  | { readonly kind: 'after'; readonly id: string }
  | { readonly kind: 'before'; readonly id: string }
  | { readonly kind: 'offset'; readonly offset: number }
  /** The last `limit` rows before the last `offset` ones. */
  | { readonly kind: 'end'; readonly offset: number; readonly limit: number }
  /** From the row that is estimated to have this share of all rows before it. */
  | { readonly kind: 'share'; readonly share: number }
  /** The rows with these ids, in any order. */
  | { readonly kind: 'rows'; readonly ids: readonly string[] }

export interface LoadedPage {
  readonly rows: readonly Row[]
  /** Whether more rows follow; null where the response does not say. */
  readonly hasMore: boolean | null
}

export interface RowSource {
  /** Whether a page can be read from a row; otherwise only by its offset. */
  readonly isKeyset: boolean
  /** Whether a page can be read from an estimated key. */
  readonly canEstimate: boolean
  /** Reads a page with the columns of a group. */
  load(anchor: Anchor, group: number, signal: AbortSignal): Promise<LoadedPage>
  /** Counts all rows. */
  count(signal: AbortSignal): Promise<number>
}

interface Load {
  readonly page: number
  readonly group: number
  readonly anchor: Anchor
  readonly controller: AbortController
}

export interface RowWindow {
  readonly first: number
  readonly last: number
  /** Groups of columns in view. */
  readonly groups: readonly number[]
}

/** A page that is not read from one beside it. The database counts rows for it, so there is one at a time. */
const isJump = ({ kind }: Anchor): boolean => kind === 'offset' || kind === 'end' || kind === 'share'

export class RowCache {
  /** Raised with every change; identifies a snapshot for `useSyncExternalStore`. */
  version = 0
  /** Null until it is known. */
  total: number | null = null
  error: unknown = null
  /** Whether the first page has arrived. */
  isReady = false

  readonly #source: RowSource
  readonly #pages = new Pages()
  readonly #loads: Load[] = []
  readonly #listeners = new Set<() => void>()
  readonly #closed = new AbortController()
  #counting: AbortController | null = null
  #window: RowWindow = { first: 0, last: rowsPerPage - 1, groups: [0] }
  /** One past the last row that is known to exist. */
  #end = 0
  /** Whether `#end` is the end. */
  #isEnd = false

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
    return this.#pages.rowAt(index)
  }

  /** Whether the position of the rows in view is estimated. */
  get isEstimated(): boolean {
    return this.#pages.get(pageOf(this.#window.last))?.isEstimated ?? false
  }

  /** The index of a row that is in the cache; -1 otherwise. */
  indexOf(id: string): number {
    return this.#pages.indexOf(id)
  }

  /** Requests what the window shows and is not there yet, and abandons requests for what it does not show. */
  show(window: RowWindow): void {
    this.#window = window
    this.#work()
  }

  /** Everything is read again; what is shown stays until then. */
  invalidate(): void {
    this.#pages.markStale()
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
    this.#pages.patch(row)
    this.#changed()
  }

  /** Reads rows that are there again; resolves with the fields that have changed, by the id of the row. */
  async refresh(ids: readonly string[]): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
    const changed = new Map<string, ReadonlySet<string>>()
    for (const group of this.#window.groups) {
      const { rows } = await this.#source.load({ kind: 'rows', ids }, group, this.#closed.signal)
      for (const row of rows) {
        const names = this.#pages.patch(row)
        if (names.size > 0) changed.set(row.id, names.union(changed.get(row.id) ?? new Set()))
      }
    }
    this.#changed()
    return changed
  }

  close(): void {
    this.#closed.abort()
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
    for (const load of [...this.#loads]) if (!near.includes(load.page) && !isJump(load.anchor)) this.#abandon(load)
    for (const page of near) {
      const kept = this.#pages.touch(page)
      for (const group of groups) {
        const isThere = kept?.groups.has(group) && !kept.isStale
        const isLoading = this.#loads.some((load) => load.page === page && load.group === group)
        // Further groups of columns are added to the rows that the first one has found.
        const isFirst = !this.#pages.fresh(page) && this.#loads.some((load) => load.page === page)
        if (!isThere && !isLoading && !isFirst && this.#loads.length < loadsMax) this.#start(page, group)
      }
    }
    if (this.total === null && this.#counting === null) this.#count()
  }

  /**
   * While one jump is under way, those of a scrollbar that is dragged wait; the last of them follows it. A page whose
   * neighbor is under way waits for its rows.
   */
  #start(page: number, group: number): void {
    const anchor = this.#anchorOf(page)
    const isAwaited = (load: Load): boolean => isJump(load.anchor) || Math.abs(load.page - page) === 1
    if (isJump(anchor) && this.#loads.some(isAwaited)) return
    void this.#load({ page, group, anchor, controller: new AbortController() })
  }

  #abandon(load: Load): void {
    load.controller.abort()
    this.#finish(load)
  }

  #finish(load: Load): void {
    if (this.#loads.includes(load)) this.#loads.splice(this.#loads.indexOf(load), 1)
  }

  #anchorOf(page: number): Anchor {
    const kept = this.#pages.fresh(page)
    if (kept && kept.rows.length > 0) return { kind: 'rows', ids: kept.rows.map(({ id }) => id) }
    if (!this.#source.isKeyset) return { kind: 'offset', offset: page * rowsPerPage }
    const [before, after] = [this.#pages.fresh(page - 1), this.#pages.fresh(page + 1)]
    const lastBefore = before?.rows.length === rowsPerPage ? before.rows.at(-1) : undefined
    const firstAfter = page > 0 ? after?.rows[0] : undefined
    // Of two neighbors, the one whose position is known.
    if (lastBefore && !(before?.isEstimated && firstAfter && !after?.isEstimated))
      return { kind: 'after', id: lastBefore.id }
    if (firstAfter) return { kind: 'before', id: firstAfter.id }
    return page === 0 ? { kind: 'after', id: '' } : this.#jumpTo(page)
  }

  /** A page by the number of rows before it, or from an estimated key where counting them takes too long. */
  #jumpTo(page: number): Anchor {
    const counted = this.#countTo(page)
    if (counted.offset <= skipsMax || this.total === null || !this.#source.canEstimate) return counted
    return { kind: 'share', share: (page * rowsPerPage) / this.total }
  }

  /** A page by the number of rows between it and the nearer end. */
  #countTo(page: number): Extract<Anchor, { readonly kind: 'offset' | 'end' }> {
    const offset = page * rowsPerPage
    const { total } = this
    if (total === null || !Number.isFinite(total) || offset >= total || !this.#source.isKeyset)
      return { kind: 'offset', offset }
    const limit = Math.min(rowsPerPage, total - offset)
    const behind = total - offset - limit
    return behind < offset ? { kind: 'end', offset: behind, limit } : { kind: 'offset', offset }
  }

  /** Whether the position of a page that is read so is estimated. */
  #isEstimated(page: number, { kind }: Anchor): boolean {
    if (kind === 'after') return this.#pages.get(page - 1)?.isEstimated ?? false
    if (kind === 'before') return this.#pages.get(page + 1)?.isEstimated ?? false
    return kind === 'share'
  }

  async #load(load: Load): Promise<void> {
    this.#loads.push(load)
    const { page, group, controller } = load
    const { signal } = controller
    try {
      let { anchor } = load
      let loaded = await this.#loadFrom(anchor, group, signal)
      if (!loaded || !this.#fits(page, anchor, loaded)) {
        anchor = this.#countTo(page)
        loaded = await this.#source.load(anchor, group, signal)
      }
      if (!signal.aborted) this.#add(page, group, anchor, loaded)
    } catch (error) {
      if (!signal.aborted) this.error = error
    } finally {
      this.#finish(load)
      if (!signal.aborted) {
        this.#changed()
        if (this.error === null) this.#work()
      }
    }
  }

  /** Null if the row beside the page has been deleted meanwhile. */
  async #loadFrom(anchor: Anchor, group: number, signal: AbortSignal): Promise<LoadedPage | null> {
    try {
      return await this.#source.load(anchor, group, signal)
    } catch (error) {
      const isKeyset = anchor.kind === 'after' || anchor.kind === 'before'
      if (isKeyset && isPlinthError(error, 'invalid-input')) return null
      throw error
    }
  }

  /** Whether there are as many rows as the position of the page requires; an estimated one may be too near to an end. */
  #fits(page: number, anchor: Anchor, { rows }: LoadedPage): boolean {
    return rows.length === rowsPerPage || (anchor.kind !== 'before' && !this.#isEstimated(page, anchor))
  }

  #add(at: number, group: number, anchor: Anchor, { rows, hasMore }: LoadedPage): void {
    this.error = null
    this.isReady = true
    if (anchor.kind === 'rows') {
      this.#pages.extend(at, rows, group)
      return
    }
    this.#pages.add(at, rows, group, this.#isEstimated(at, anchor))
    const end = at * rowsPerPage + rows.length
    const isLast = anchor.kind === 'before' ? false : hasMore === null ? rows.length < rowsPerPage : !hasMore
    if (isLast) {
      this.#end = end
      this.#isEnd = true
      this.total = end
      this.#pages.endAt(at)
    } else if (end > this.#end || this.#isEnd) {
      this.#end = Math.max(this.#end, end)
      this.#isEnd = false
    }
  }

  #count(): void {
    const controller = new AbortController()
    this.#counting = controller
    this.#source.count(controller.signal).then(
      (total) => {
        if (controller.signal.aborted) return
        this.total = total
        this.#changed()
        this.#work()
      },
      // A count that takes too long leaves the total unknown; the rows can be read without it.
      () => {},
    )
  }
}
