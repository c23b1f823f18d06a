/** Whether a row matches a query: for rows that an optimistic write shows before the server has decided. */

import type { QueryParts, Row, Tuple } from '../records/query.ts'
import { compareValues as order } from './order.ts'

function matchesTuple(row: Row, [field, op, value]: Tuple): boolean {
  const actual = row[field] ?? null
  if (value === null) return op === '==' ? actual === null : actual !== null
  if (actual === null) return op === 'not in' && (value as unknown[]).length === 0
  switch (op) {
    case '==':
      return actual === value
    case '!=':
      return actual !== value
    case '>':
      return order(actual, value) > 0
    case '>=':
      return order(actual, value) >= 0
    case '<':
      return order(actual, value) < 0
    case '<=':
      return order(actual, value) <= 0
    case 'contains':
      return String(actual).includes(String(value))
    case 'in':
      return (value as unknown[]).includes(actual)
    case 'not in':
      return !(value as unknown[]).includes(actual)
    default:
      return true
  }
}

export const matches = (row: Row, { filter, orFilter }: QueryParts): boolean =>
  filter.every((tuple) => matchesTuple(row, tuple)) &&
  (orFilter.length === 0 || orFilter.some((tuple) => matchesTuple(row, tuple)))
