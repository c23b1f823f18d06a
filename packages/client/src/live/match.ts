/** Whether a row matches a query: for rows that an optimistic write shows before the server has decided. */

import type { QueryParts, Row, Tuple } from '../records/query.ts'
import { compareValues } from './order.ts'

function matchesTuple(row: Row, [field, op, value]: Tuple): boolean {
  const actual = row[field] ?? null
  if (value === null) return (op === '==') === (actual === null)
  if (actual === null) return op === 'not in' && (value as unknown[]).length === 0
  const order = compareValues(actual, value)
  switch (op) {
    case '==':
      return actual === value
    case '!=':
      return actual !== value
    case '>':
      return order > 0
    case '>=':
      return order >= 0
    case '<':
      return order < 0
    case '<=':
      return order <= 0
    case 'contains':
      return `${actual}`.includes(`${value}`)
    case 'in':
      return (value as unknown[]).includes(actual)
    case 'not in':
      return !(value as unknown[]).includes(actual)
    default:
      return true
  }
}

export const matches = (row: Row, { filter = [], orFilter }: QueryParts): boolean =>
  filter.every((tuple) => matchesTuple(row, tuple)) && (orFilter?.some((tuple) => matchesTuple(row, tuple)) ?? true)
