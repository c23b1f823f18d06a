/** The order of rows, as the server sorts them: text by code point, nulls first, then by id. */
import type { QueryParts, Row } from '../records/query.ts'

export type Compare = (left: Row, right: Row) => number

function compareText(left: string, right: string): number {
  let at = 0
  while (at < left.length && left[at] === right[at]) at++
  return (left.codePointAt(at) ?? -1) - (right.codePointAt(at) ?? -1)
}

export function compareValues(left: unknown = null, right: unknown = null): number {
  if (left === right) return 0
  if (left === null) return -1
  if (right === null) return 1
  return typeof left === 'string' ? compareText(left, `${right}`) : (left as number) - (right as number)
}

/** Compares rows in the order of a query. Every sort ends with the id, in the direction of the last key. */
export function orderOf({ sort = [] }: QueryParts): Compare {
  const keys = sort.map((key) => key.split(':') as [field: string, direction: string | undefined])
  keys.push(['id', keys.at(-1)?.[1]])
  return (left, right) => {
    for (const [field, direction] of keys) {
      const order = compareValues(left[field], right[field])
      if (order) return direction === 'desc' ? -order : order
    }
    return 0
  }
}
