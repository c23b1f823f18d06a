/** What the audit log shows of records, changes and filters: values of hidden fields are masked. */
import type { Table } from '../../query/table.ts'

type Hidden = Pick<Table, 'hidden'>

/** In place of the value of a hidden field. */
const hiddenValue = '[hidden]'

export const maskedValues = ({ hidden }: Hidden, values: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, hidden.has(name) ? hiddenValue : value]))

/** A filter as it was sent, which need not be valid. */
export function maskedFilter(table: Hidden, value: unknown): unknown {
  if (!Array.isArray(value)) return value
  const [field, operator] = value as unknown[]
  const path = typeof field === 'string' ? field.split('.') : []
  // What another table hides is not known here.
  if (path.length > 1 || path.some((name) => table.hidden.has(name))) return [field, operator, hiddenValue]
  return value.map((part) => maskedFilter(table, part))
}
