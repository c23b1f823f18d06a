/**
 * Finds which of many conditions a row may satisfy without judging them all: a condition that can only be true of rows
 * whose field has one of a few values is filed under these values. What is found must still be judged (`matches`).
 */
import type { Expr, Scalar } from './expr.ts'
import type { Row } from './matches.ts'

/** A condition is true only of rows whose `field` is one of `values`. */
interface Key {
  readonly field: string
  readonly values: readonly Scalar[]
}

/** A union of keys longer than this costs more to file than it spares. */
const unionKeysMax = 8

export interface ExprIndex<T> {
  /** Files an entry. The same entry is filed once. */
  add(expr: Expr, entry: T): void
  remove(expr: Expr, entry: T): void
  /** Every entry whose condition may be true of the row, each at least once; those that cannot be filed always. */
  candidates(row: Row, found: Set<T>): void
  readonly size: number
}

/** Keys of which at least one holds wherever the condition is true; null where none can be named. */
export function keysOf(expr: Expr): readonly Key[] | null {
  switch (expr.kind) {
    case 'const':
      return expr.value ? null : []
    case 'compare':
      return expr.op === '==' && typeof expr.value !== 'object' ? [{ field: expr.field, values: [expr.value] }] : null
    case 'in':
      return expr.negated ? null : [{ field: expr.field, values: expr.values }]
    case 'and':
      return narrowest(expr.of.map(keysOf))
    case 'or': {
      const parts = expr.of.map(keysOf)
      if (parts.some((part) => part === null)) return null
      const keys = (parts as (readonly Key[])[]).flat()
      return keys.length <= unionKeysMax ? keys : null
    }
    default:
      return null
  }
}

const breadth = (keys: readonly Key[]): number => keys.reduce((sum, { values }) => sum + values.length, 0)

/** Of several ways to file a conjunction, the one with the fewest values. */
function narrowest(parts: readonly (readonly Key[] | null)[]): readonly Key[] | null {
  let best: readonly Key[] | null = null
  for (const part of parts) if (part && (!best || breadth(part) < breadth(best))) best = part
  return best
}

export function createExprIndex<T>(): ExprIndex<T> {
  /** Field to value to entries. A map tells 1, '1' and true apart, as comparisons do. */
  const byField = new Map<string, Map<Scalar, Set<T>>>()
  const unfiled = new Set<T>()
  const all = new Set<T>()

  function eachPlace(expr: Expr, visit: (field: string, value: Scalar) => void): boolean {
    const keys = keysOf(expr)
    if (!keys) return false
    for (const { field, values } of keys) for (const value of values) visit(field, value)
    return true
  }

  return {
    get size() {
      return all.size
    },
    add(expr, entry) {
      all.add(entry)
      const isFiled = eachPlace(expr, (field, value) => {
        const byValue = byField.get(field) ?? new Map<Scalar, Set<T>>()
        byField.set(field, byValue)
        const entries = byValue.get(value)
        if (entries) entries.add(entry)
        else byValue.set(value, new Set([entry]))
      })
      if (!isFiled) unfiled.add(entry)
    },
    remove(expr, entry) {
      all.delete(entry)
      unfiled.delete(entry)
      eachPlace(expr, (field, value) => {
        const byValue = byField.get(field)
        const entries = byValue?.get(value)
        entries?.delete(entry)
        if (entries?.size === 0) byValue?.delete(value)
        if (byValue?.size === 0) byField.delete(field)
      })
    },
    candidates(row, found) {
      for (const entry of unfiled) found.add(entry)
      for (const [field, byValue] of byField) {
        const value = Object.hasOwn(row, field) ? row[field] : undefined
        const entries = byValue.get(value as Scalar)
        if (entries) for (const entry of entries) found.add(entry)
      }
    },
  }
}
