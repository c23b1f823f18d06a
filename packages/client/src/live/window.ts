/**
 * The rows of a live list, in order: the first ones of the query up to a bound, behind which the rows are not known.
 * Pure: knows neither sockets nor requests.
 */
import type { Row } from '../records/query.ts'
import { findVersion, isOlder } from '../records/versions.ts'
import type { Compare } from './order.ts'

/** How many rows beyond its limit a list keeps, so that a removal seldom needs a request. */
export const spareRows = 20

export type Window = ReturnType<typeof createWindow>

export function createWindow(compare: Compare, limit: number) {
  let rows: Row[] = []
  /** The last row up to which all rows are known; undefined where the list has no more rows. */
  let bound: Row | undefined

  const get = (id: string): Row | undefined => rows.find((row) => row.id === id)
  const drop = (dropped: Row): void => {
    rows = rows.filter((row) => row !== dropped)
  }
  /** Whether a row at this position would be known. */
  const covers = (row: Row): boolean => !bound || compare(row, bound) <= 0

  return {
    compare,
    get,
    covers,

    get rows(): readonly Row[] {
      return rows
    },

    /** Whether the list has no more rows. */
    get isComplete(): boolean {
      return bound === undefined
    },

    /** Whether rows that belong to the list may be missing. */
    get needsRefill(): boolean {
      return bound !== undefined && rows.length < limit
    },

    /** Replaces all rows. A row that has not changed keeps its identity. */
    reset(next: readonly Row[], isComplete: boolean): void {
      const byId = new Map(rows.map((row) => [row.id, row]))
      rows = next.map((row) => {
        const known = byId.get(row.id)
        const isSame = known && findVersion(known) === findVersion(row) && JSON.stringify(known) === JSON.stringify(row)
        return isSame ? known : row
      })
      bound = isComplete ? undefined : rows.at(-1)
    },

    /** Applies a row that is in the query's result. An older version of a known row is ignored. */
    put(row: Row): void {
      const known = get(row.id)
      if (known) {
        if (isOlder(findVersion(row), findVersion(known))) return
        drop(known)
      }
      if (!covers(row)) return
      // All other rows are in order, so that sorting compares each row once.
      rows = [...rows, row].sort(compare)
      if (rows.length <= limit + 2 * spareRows) return
      rows = rows.slice(0, limit + spareRows)
      bound = rows.at(-1)
    },

    /** Applies that a row has left the query's result. */
    remove(id: string, version: number | undefined): void {
      const known = get(id)
      if (known && !isOlder(version, findVersion(known))) drop(known)
    },
  }
}
