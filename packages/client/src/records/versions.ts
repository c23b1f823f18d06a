/** Versions of rows: which of two copies of a row is newer, and what `If-Match` takes. */

const versions = new WeakMap<object, string>()

/** Remembers the version with which a row was received. */
export const setVersion = <Row extends object>(row: Row, version: string | null | undefined): Row => {
  if (version) versions.set(row, version)
  return row
}

/** Undefined for a row whose version is not known. */
export const findVersion = (row: object): string | undefined => versions.get(row)

/**
 * The version of a row that the client received, for `ifMatch`: from a read, a write or a live list. A copy of the row
 * has none.
 */
export function versionOf(row: object): string {
  const version = versions.get(row)
  if (version === undefined) throw new TypeError('The row was not received from the client, or is a copy')
  return version
}

/** The change number in an `ETag` or a version. */
const numberOf = (version: string): string => /\d+/.exec(version)?.[0] ?? ''

/** Whether `left` is an older version of a row than `right`. Change numbers have no leading zeros. */
export function isOlder(left: string | undefined, right: string | undefined): boolean {
  if (left === undefined || right === undefined) return false
  const [a, b] = [numberOf(left), numberOf(right)]
  return a.length === b.length ? a < b : a.length < b.length
}
