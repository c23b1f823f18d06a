/**
 * Which computed fields of a table have stored values that no longer follow from its declaration. They are noted in the
 * description of the table before its rows are computed again (`recompute.ts`), so that it continues after a crash.
 */
import type { Table } from '../../../query/table.ts'

/** Fields whose stored values are being computed again, and the key of the last row that has been. */
export interface StaleFields {
  readonly names: readonly string[]
  /** The id, after the owner where instances share the table; null before the first row. */
  readonly after: readonly string[] | null
}

/** What a description stores of computed fields; both members are absent where there are none. */
export interface ComputedDescription {
  /** Field to the fingerprint of its expression. */
  readonly computed?: Readonly<Record<string, string>>
  readonly stale?: StaleFields
}

const fingerprintsOf = ({ computed }: Table): Readonly<Record<string, string>> =>
  Object.fromEntries(computed.map(({ name, fingerprint }) => [name, fingerprint]))

export const describeComputed = (table: Table): ComputedDescription =>
  table.computed.length === 0 ? {} : { computed: fingerprintsOf(table) }

/**
 * The fields of an existing table whose values must be computed again; null if all are right. `isFilled` returns
 * whether a field gets its default in rows without a value.
 */
export function findStale(
  table: Table,
  known: ComputedDescription,
  isFilled: (name: string) => boolean,
): StaleFields | null {
  const changed = new Set<string>()
  for (const { name, fingerprint, operands } of table.computed) {
    const isSame = known.computed?.[name] === fingerprint
    if (!isSame || [...operands].some((operand) => changed.has(operand) || isFilled(operand))) changed.add(name)
  }
  const begun = (known.stale?.names ?? []).filter((name) => table.computed.some((one) => one.name === name))
  const names = [...new Set([...begun, ...changed])]
  if (names.length === 0) return null
  return { names, after: changed.size === 0 ? (known.stale?.after ?? null) : null }
}
