/** Versions of rows: which of two copies of a row is newer, and what `If-Match` takes. */

const versions = new WeakMap<object, number>()

/** Remembers the version with which a row was received: a number, or an `ETag` that begins with it. */
export function setVersion<Row extends object>(row: Row, version: number | string | null | undefined): Row {
  const digits = /\d+/.exec(`${version}`)
  if (digits) versions.set(row, Number(digits[0]))
  return row
}

/** Remembers the versions of the rows of an answer. */
export function setVersions<Row extends object>(
  rows: readonly Row[],
  versions: readonly (number | null)[] = [],
): Row[] {
  return rows.map((row, at) => setVersion(row, versions[at]))
}

/** Undefined for a row whose version is not known, and for no row. */
export const findVersion = (row: object | null | undefined): number | undefined => versions.get(row as object)

/**
 * The version of a row that the client received, for `ifMatch`: from a read, a write or a live list. A copy of the row
 * has none.
 */
export function versionOf(row: object): string {
  const version = versions.get(row)
  if (version === undefined) throw new TypeError('The row is not from the client')
  return `${version}`
}

/** Whether `left` is an older version of a row than `right`; false where one of them is not known. */
export const isOlder = (left: number | undefined, right: number | undefined): boolean =>
  (left as number) < (right as number)
