/**
 * The rows of a live list, in order: the first ones of the query up to a bound, behind which the rows are not known.
 * Pure: knows neither sockets nor requests.
 */
import type { Row } from '../records/query.ts'
import { findVersion, isOlder } from '../records/versions.ts'
import type { Compare } from './order.ts'

/** How many rows beyond its limit a list keeps, so that a removal seldom needs a request. */
export const spareRows = 20

export class Window {
  readonly compare: Compare
  readonly #limit: number
  readonly #byId = new Map<string, Row>()
  #rows: Row[] = []
  /** The last row up to which all rows are known; null where the list has no more rows. */
  #bound: Row | null = null

  constructor(compare: Compare, limit: number) {
    this.compare = compare
    this.#limit = limit
  }

  get rows(): readonly Row[] {
    return this.#rows
  }

  get(id: string): Row | undefined {
    return this.#byId.get(id)
  }

  /** Whether rows that belong to the list may be missing. */
  get needsRefill(): boolean {
    return this.#bound !== null && this.#rows.length < this.#limit
  }

  /** Whether a row at this place would be known. */
  covers(row: Row): boolean {
    return this.#bound === null || this.compare(row, this.#bound) <= 0
  }

  /** Replaces all rows. A row that has not changed keeps its identity. */
  reset(rows: readonly Row[], isComplete: boolean): void {
    const kept = rows.map((row) => {
      const known = this.#byId.get(row.id)
      return known && findVersion(known) === findVersion(row) && JSON.stringify(known) === JSON.stringify(row)
        ? known
        : row
    })
    this.#rows = kept
    this.#bound = isComplete ? null : (kept.at(-1) ?? null)
    this.#byId.clear()
    for (const row of kept) this.#byId.set(row.id, row)
  }

  /** Applies a row that is in the query's result. An older version of a known row is ignored. */
  put(row: Row): void {
    const known = this.#byId.get(row.id)
    if (known) {
      if (isOlder(findVersion(row), findVersion(known))) return
      this.#drop(known)
    }
    if (!this.covers(row)) return
    // All but this row are in order, so that sorting takes as many comparisons as there are rows.
    this.#rows.push(row)
    this.#rows.sort(this.compare)
    this.#byId.set(row.id, row)
    if (this.#rows.length > this.#limit + 2 * spareRows) this.#trim()
  }

  /** Applies that a row has left the query's result. */
  remove(id: string, version: number | undefined): void {
    const known = this.#byId.get(id)
    if (known && !isOlder(version, findVersion(known))) this.#drop(known)
  }

  #trim(): void {
    for (const row of this.#rows.splice(this.#limit + spareRows)) this.#byId.delete(row.id)
    this.#bound = this.#rows.at(-1) ?? null
  }

  #drop(row: Row): void {
    this.#rows.splice(this.#rows.indexOf(row), 1)
    this.#byId.delete(row.id)
  }
}
