/** Whether a row matches a query: for rows that an optimistic write shows before the server has decided. */

import type { QueryParts, Row, Tuple } from '../records/query.ts'
import { compareValues } from './order.ts'

function matchesTuple(row: Row, [field, op, value]: Tuple): boolean {
  const actual = row[field] ?? null
  if (value === null) return (op === '==') === (actual === null)
  if (actual === null) return op === 'not in' && !(value as unknown[]).length
  const order = compareValues(actual, value)
  const isListed = [value].flat().includes(actual)
  const results: Readonly<Record<string, boolean>> = {
    '==': order === 0,
    '!=': order !== 0,
    '>': order > 0,
    '>=': order >= 0,
    '<': order < 0,
    '<=': order <= 0,
    contains: `${actual}`.includes(`${value}`),
    in: isListed,
    'not in': !isListed,
  }
  // The server decides what is near or within.
  return results[op] ?? true
}

export const matches = (row: Row, { filter = [], orFilter }: QueryParts): boolean =>
  filter.every((tuple) => matchesTuple(row, tuple)) && (!orFilter || orFilter.some((tuple) => matchesTuple(row, tuple)))
