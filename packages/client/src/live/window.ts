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
      const isSame =
        before && findVersion(before) === findVersion(row) && JSON.stringify(before) === JSON.stringify(row)
      return isSame ? before : row
    })
    this.bound = isComplete ? undefined : this.rows.at(-1)
  }

  /** Adds a row at its place to rows in order. */
  insert(rows: Row[], row: Row): void {
    let at = 0
    for (let end = rows.length; at < end; ) {
      const middle = (at + end) >> 1
      if (this.compare(rows[middle] as Row, row) < 0) at = middle + 1
      else end = middle
    }
    rows.splice(at, 0, row)
  }

  /** Applies that a row is in the query's result, null that it is not. What is older than a known row is ignored. */
  set(id: string, row: Row | null, version: number | undefined): void {
    const known = this.get(id)
    if (known && isOlder(version, findVersion(known))) return
    const rows = [...this.rows]
    if (known) rows.splice(rows.indexOf(known), 1)
    if (row && this.covers(row)) this.insert(rows, row)
    this.rows = rows
    if (rows.length <= this.limit + 2 * spareRows) return
    this.rows = rows.slice(0, this.limit + spareRows)
    this.bound = this.rows.at(-1)
  }
}
