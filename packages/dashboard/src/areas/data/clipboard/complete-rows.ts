/** Rows with the complete values of some columns: what the grid has cut, or has not read, is read from the server. */
import type { Column } from '../grid/columns.ts'
import type { TableAddress } from '../location.ts'
import { getRecord } from '../record/writes.ts'
import type { Row } from '../rows/row.ts'
import { hasValue } from './plan.ts'

/** Records that are read for one copy or fill. */
const recordsReadMax = 200
/** Characters of their values: what a page can put into the clipboard without a pause that is felt. */
const charsReadMax = 16_000_000
/** Requests at a time: what a browser sends to one server anyway. */
const readsAtOnce = 6

/** Rejects where more records have to be read, or have longer values, than a page can keep. */
export async function readComplete(
  address: TableAddress,
  rows: readonly Row[],
  columns: readonly Column[],
): Promise<readonly Row[]> {
  const incomplete = rows.filter((row) => columns.some((column) => !hasValue(row, column)))
  if (incomplete.length > recordsReadMax)
    throw new Error(`At most ${recordsReadMax} records with long values can be read at once; export them.`)
  const complete = new Map<string, Row>()
  let chars = 0
  for (let at = 0; at < incomplete.length; at += readsAtOnce) {
    const read = await Promise.all(incomplete.slice(at, at + readsAtOnce).map(({ id }) => getRecord(address, id)))
    for (const { id, version, values, cut } of read) {
      const kept = Object.fromEntries(columns.map(({ name }) => [name, values[name]]))
      chars += JSON.stringify(kept).length
      complete.set(id, { id, version, values: kept, cut })
    }
    if (chars > charsReadMax) throw new Error('The values are too long to be read at once; export them.')
  }
  return rows.map((row) => complete.get(row.id) ?? row)
}
