/**
 * The rows of a live list, in order: the first ones of the query up to a bound, behind which the rows are not known.
 * Pure: knows neither sockets nor requests.
 */
import type { Row } from '../records/query.ts'
import { findVersion, isOlder, setVersion } from '../records/versions.ts'
import type { Compare } from './order.ts'

/** How many rows beyond its limit a list keeps, so that a removal seldom needs a request. */
export const spareRows = 20

export class Window {
  rows: readonly Row[] = []
  /** The last row up to which all rows are known; undefined where the list has no more rows. */
  bound: Row | undefined

  constructor(
    readonly compare: Compare,
    readonly limit: number,
  ) {}

  get(id: string): Row | undefined {
    return this.rows.find((row) => row.id === id)
  }

  /** Whether a row at this position would be known. */
  covers(row: Row): boolean {
    return !this.bound || this.compare(row, this.bound) <= 0
  }

  /** Replaces all rows. A row that has not changed keeps its identity. */
  reset(rows: readonly Row[], isComplete: boolean): void {
    const known = new Map(this.rows.map((row) => [row.id, row]))
    this.rows = rows.map((row) => {
      const before = known.get(row.id)
      // A row without a visible change may have a later version all the same.
      return before && JSON.stringify(before) === JSON.stringify(row) ? setVersion(before, findVersion(row)) : row
    })
    this.bound = isComplete ? undefined : this.rows.at(-1)
  }

  /** Rows in order, with one of them put at its place, or removed. The same array where that changes nothing. */
  position(rows: readonly Row[], id: string, row: Row | null): readonly Row[] {
    const placed = rows.filter((other) => other.id !== id)
    if (row && this.covers(row)) {
      let at = 0
      for (let end = placed.length; at < end; ) {
        const middle = (at + end) >> 1
        if (this.compare(placed[middle] as Row, row) < 0) at = middle + 1
        else end = middle
      }
      placed.splice(at, 0, row)
    } else if (placed.length === rows.length) return rows
    return placed
  }

  /** Applies that a row is in the query's result, null that it is not. What is older than a known row is ignored. */
  set(id: string, row: Row | null, version: number | undefined): void {
    if (isOlder(version, findVersion(this.get(id)))) return
    this.rows = this.position(this.rows, id, row)
    if (this.rows.length <= this.limit + 2 * spareRows) return
    this.rows = this.rows.slice(0, this.limit + spareRows)
    this.bound = this.rows.at(-1)
  }
}
