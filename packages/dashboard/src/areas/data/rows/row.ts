/** A row of a list as the grid has it. Long values are cut; the record of the panel has all of them. */

export interface Row {
  readonly id: string
  /** For `If-Match`. */
  readonly version: string
  readonly values: Readonly<Record<string, unknown>>
  /** Fields of which `values` has the beginning only. */
  readonly cut: ReadonlySet<string>
}

/** Names the cut fields of an item. */
const cutMember = '$cut'

const noFields: ReadonlySet<string> = new Set()

export function rowOf(item: Readonly<Record<string, unknown>>, version: number | string | null | undefined): Row {
  const { [cutMember]: cut, ...values } = item
  return {
    id: String(values.id),
    version: String(version ?? ''),
    values,
    cut: Array.isArray(cut) ? new Set(cut.map(String)) : noFields,
  }
}

/** Of two rows with the same id, the fields of both. */
export const mergeRows = (one: Row, other: Row): Row => ({
  ...one,
  values: { ...one.values, ...other.values },
  cut: new Set([...one.cut, ...other.cut]),
})
