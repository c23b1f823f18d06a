/** The order of rows, as the server sorts them: text by code point, nulls first, then by id. */
import type { QueryParts, Row } from '../records/query.ts'

export type Compare = (left: Row, right: Row) => number

function compareText(left: string, right: string): number {
  for (let at = 0; at < left.length && at < right.length; at++) {
    const order = (left.codePointAt(at) as number) - (right.codePointAt(at) as number)
    if (order !== 0) return order
  }
  return left.length - right.length
}

const isNull = (value: unknown): boolean => value === null || value === undefined

export function compareValues(left: unknown, right: unknown): number {
  if (left === right) return 0
  if (isNull(left) || isNull(right)) return Number(isNull(right)) - Number(isNull(left))
  if (typeof left === 'string' && typeof right === 'string') return compareText(left, right)
  return Number(left) - Number(right)
}

/** Compares rows in the order of a query. Every sort ends with the id, in the direction of the last key. */
export function orderOf(sort: QueryParts['sort']): Compare {
  const keys = [...sort, ['id', sort.at(-1)?.[1] ?? 'asc'] as const]
  return (left, right) => {
    for (const [field, direction] of keys) {
      const order = compareValues(left[field], right[field])
      if (order !== 0) return direction === 'asc' ? order : -order
    }
    return 0
  }
}
