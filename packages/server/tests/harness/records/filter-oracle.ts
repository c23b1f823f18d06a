/** Filters on plain rows, written independently of the server: what property tests compare its answers with. */

export type Value = string | number | boolean | null
export type Row = Readonly<Record<string, Value>>
export type Tuple = readonly [field: string, op: string, value: Value | readonly Value[]]

/** Code point order, which equals the order of the UTF-8 bytes. */
export const compare = (a: Value, b: Value): number =>
  typeof a === 'string' && typeof b === 'string'
    ? Buffer.compare(Buffer.from(a), Buffer.from(b))
    : Number(a) - Number(b)

export function matchesTuple([field, op, value]: Tuple, of: Row): boolean {
  const own = of[field] ?? null
  if (value === null) return (op === '==') === (own === null)
  if (Array.isArray(value)) {
    if (value.length === 0) return op === 'not in'
    return own !== null && value.includes(own) === (op === 'in')
  }
  if (own === null) return false
  const order = compare(own, value as Value)
  switch (op) {
    case '==':
      return order === 0
    case '!=':
      return order !== 0
    case '>':
      return order > 0
    case '>=':
      return order >= 0
    case '<':
      return order < 0
    case '<=':
      return order <= 0
    default:
      return (own as string).includes(value as string)
  }
}
