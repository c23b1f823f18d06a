/** The pages of rows that a cache keeps: a bounded number of pages and of characters, the least recently shown leave. */
import { mergeRows, type Row } from './row.ts'

/** Rows per page. With `previewChars` and `columnsPerGroup` a response stays under 100 kB. */
export const rowsPerPage = 40
/** 4,000 rows; the grid shows some 30 at a time. */
export const pagesKeptMax = 100
/** Characters of the values of all pages: at most 32 MB, also with hundreds of wide columns. */
export const charsKeptMax = 16_000_000

/** Of a value that is no text, with its name. */
const otherValueChars = 16

export interface Page {
  rows: readonly Row[]
  /** Groups of columns that are there. */
  readonly groups: Set<number>
  /** Read before the last change. It is shown until it has been read again. */
  isStale: boolean
  /** Whether its position among all rows is estimated. */
  readonly isEstimated: boolean
  /** When it was last shown, as a counter. */
  usedAt: number
  chars: number
}

function charsOf(rows: readonly Row[]): number {
  let chars = 0
  for (const { values } of rows)
    for (const name in values) {
      const value = values[name]
      chars += typeof value === 'string' ? value.length + otherValueChars : otherValueChars
    }
  return chars
}

const isSame = (one: unknown, other: unknown): boolean =>
  one === other || (typeof one === 'object' && JSON.stringify(one) === JSON.stringify(other))

export const pageOf = (index: number): number => Math.floor(index / rowsPerPage)

/** The pages with the rows of a range. */
export const pageRange = (first: number, last: number): number[] => {
  const [from, to] = [pageOf(Math.max(0, first)), pageOf(Math.max(0, last))]
  return Array.from({ length: to - from + 1 }, (_, at) => from + at)
}

export class Pages {
  readonly #pages = new Map<number, Page>()
  #clock = 0
  #chars = 0

  get(at: number): Page | undefined {
    return this.#pages.get(at)
  }

  /** A page that is there and current. */
  fresh(at: number): Page | undefined {
    const page = this.#pages.get(at)
    return page?.isStale ? undefined : page
  }

  /** Marks a page as shown. */
  touch(at: number): Page | undefined {
    const page = this.#pages.get(at)
    if (page) page.usedAt = ++this.#clock
    return page
  }

  rowAt(index: number): Row | undefined {
    return this.#pages.get(pageOf(index))?.rows[index % rowsPerPage]
  }

  /** The index of a row; -1 if it is not there. */
  indexOf(id: string): number {
    for (const [at, { rows }] of this.#pages) {
      const index = rows.findIndex((row) => row.id === id)
      if (index >= 0) return at * rowsPerPage + index
    }
    return -1
  }

  add(at: number, rows: readonly Row[], group: number, isEstimated: boolean): void {
    this.#remove(at)
    const chars = charsOf(rows)
    this.#pages.set(at, {
      rows,
      groups: new Set([group]),
      isStale: false,
      isEstimated,
      usedAt: ++this.#clock,
      chars,
    })
    this.#chars += chars
    // What was estimated beside it is read again, from this page on.
    if (!isEstimated)
      for (const beside of [at - 1, at + 1]) if (this.#pages.get(beside)?.isEstimated) this.#remove(beside)
    this.#evict()
  }

  /** Adds the columns of a group to the rows of a page. */
  extend(at: number, rows: readonly Row[], group: number): void {
    const page = this.#pages.get(at)
    if (!page) return
    const byId = new Map(rows.map((row) => [row.id, row]))
    page.groups.add(group)
    this.#replace(
      page,
      page.rows.map((row) => {
        const other = byId.get(row.id)
        return other ? mergeRows(row, other) : row
      }),
    )
    this.#evict()
  }

  /** Replaces fields of a row that was written; returns the names of those that differ. */
  patch(row: Row): ReadonlySet<string> {
    const changed = new Set<string>()
    for (const page of this.#pages.values()) {
      const index = page.rows.findIndex(({ id }) => id === row.id)
      const before = page.rows[index]
      if (!before) continue
      for (const name in row.values)
        if (name in before.values && !isSame(before.values[name], row.values[name])) changed.add(name)
      const cut = new Set([...before.cut].filter((name) => !(name in row.values)))
      const merged = { ...mergeRows({ ...before, cut }, row), version: row.version }
      this.#replace(page, page.rows.with(index, merged))
    }
    return changed
  }

  markStale(): void {
    for (const page of this.#pages.values()) page.isStale = true
  }

  /** Removes the pages after one, behind which there are no rows. */
  endAt(last: number): void {
    for (const at of this.#pages.keys()) if (at > last) this.#remove(at)
  }

  #replace(page: Page, rows: readonly Row[]): void {
    this.#chars -= page.chars
    page.rows = rows
    page.chars = charsOf(rows)
    this.#chars += page.chars
  }

  #remove(at: number): void {
    this.#chars -= this.#pages.get(at)?.chars ?? 0
    this.#pages.delete(at)
  }

  #evict(): void {
    if (this.#pages.size <= pagesKeptMax && this.#chars <= charsKeptMax) return
    const oldest = [...this.#pages].sort(([, one], [, other]) => one.usedAt - other.usedAt)
    // The page that was read last stays, whatever it has.
    for (const [at] of oldest.slice(0, -1)) {
      if (this.#pages.size <= pagesKeptMax && this.#chars <= charsKeptMax) return
      this.#remove(at)
    }
  }
}
