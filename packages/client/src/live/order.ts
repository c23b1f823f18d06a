/** The order of rows, as the server sorts them: text by code point, nulls first, then by id. */
import type { QueryParts, Row } from '../records/query.ts'

export type Compare = (left: Row, right: Row) => number

/** Ranks UTF-16 code units as the code points that they begin: surrogates after all others. */
const rankOf = (unit: number): number => (unit >= 0xe000 ? unit - 0x800 : unit >= 0xd800 ? unit + 0x2000 : unit)

export function compareText(left: string, right: string): number {
  if (left === right) return 0
  const length = Math.min(left.length, right.length)
  for (let at = 0; at < length; at++) {
    const [a, b] = [left.charCodeAt(at), right.charCodeAt(at)]
    if (a !== b) return rankOf(a) - rankOf(b)
  }
  return left.length - right.length
}

function compareValues(left: unknown, right: unknown): number {
  if (left === right) return 0
  if (left === null || left === undefined) return right === null || right === undefined ? 0 : -1
  if (right === null || right === undefined) return 1
  if (typeof left === 'string' && typeof right === 'string') return compareText(left, right)
  return Number(left) - Number(right)
}

/** Compares rows in the order of a query. Every sort ends with the id, in the direction of the last key. */
export function orderOf({ sort }: Pick<QueryParts, 'sort'>): Compare {
  const keys = [...sort, ['id', sort.at(-1)?.[1] ?? 'asc'] as const]
  return (left, right) => {
    for (const [field, direction] of keys) {
      const order = compareValues(left[field], right[field])
      if (order !== 0) return direction === 'asc' ? order : -order
    }
    return 0
  }
}
