/**
 * Reads complete records that a write will change, in portions, so that large ones neither block the event loop nor
 * exhaust memory. Bounded by what one request may change.
 */
import { createSlices } from '../../../base/concurrency/slices.ts'
import type { StoredType } from '../../../engines/sql/dialect.ts'
import { type SqlScalar, type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { payloadTooLarge } from '../../../errors.ts'
import {
  requestChangeCharsMax,
  rowsReadAtOnceChars,
  rowsReadAtOnceMax,
  rowsReadAtOnceMin,
} from '../../../limits/writes.ts'
import type { RecordRow } from '../rows.ts'
import type { VersionedRow } from '../version.ts'
import type { Write } from '../writes/write-context.ts'

/** Characters of a row before its JSON is parsed. */
function charsOf(row: RecordRow): number {
  let chars = 0
  for (const name in row) {
    const value = row[name]
    if (typeof value === 'string') chars += value.length
  }
  return chars
}

export const tooManyRecords = (): Error =>
  payloadTooLarge(requestChangeCharsMax, 'sum of the records that this request would change')

export interface RowsByValue {
  /** A unique column of the table. */
  readonly column: SqlText
  readonly type: StoredType
  readonly values: readonly Exclude<SqlScalar, null>[]
  /** Whether to lock the rows until the transaction ends. */
  readonly locks: boolean
}

/** Reads records by values of a unique column, ordered by id within each portion. Throws 413 if they are too large. */
export async function readRows(
  { call, tx }: Write,
  { column, type, values, locks }: RowsByValue,
): Promise<VersionedRow[]> {
  const { rows, backEnd } = call
  const { inList, forUpdate } = backEnd.dialect
  const columns = sql`${rows.columns(true)}, ${rows.version}`
  const found: VersionedRow[] = []
  const next = createSlices()
  let chars = 0
  let portion = rowsReadAtOnceMin
  for (let at = 0; at < values.length; ) {
    const some = values.slice(at, at + portion) as (string | number | boolean)[]
    at += some.length
    const isOne = some.length === 1 ? sql`${column} = ${some[0] as SqlScalar}` : inList(column, some, type)
    const read = await tx.all<RecordRow>(
      sql`SELECT ${columns} FROM ${rows.from} WHERE ${isOne} ORDER BY ${rows.name}."id"${locks ? forUpdate : sql``}`,
    )
    for (const row of read) {
      chars += charsOf(row)
      found.push(rows.versionedFromSql(row))
    }
    if (chars > requestChangeCharsMax) throw tooManyRecords()
    const average = chars / Math.max(1, found.length)
    portion = Math.min(rowsReadAtOnceMax, Math.max(1, Math.floor(rowsReadAtOnceChars / Math.max(1, average))))
    const pause = next()
    if (pause) await pause
  }
  return found
}
