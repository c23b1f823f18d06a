/** The `where` of a function: the values that fields of the row must have, such as `{ paid: true }`. */
import type { Expr } from '../../../query/expr.ts'
import { parseFilterGroups } from '../../../query/filter.ts'
import type { Table } from '../../../query/table.ts'

/** Null for no condition. Throws 400 for a field or a value that the table does not have. */
export function parseWhere(table: Table, where: object | null): Expr | null {
  const conditions = Object.entries(where ?? {}).map(([field, value]) => [field, '==', value])
  if (conditions.length === 0) return null
  return parseFilterGroups({ table, showsHidden: true }, { filter: conditions }).condition
}
