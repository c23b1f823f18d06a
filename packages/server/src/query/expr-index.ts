/**
 * An inverted index over conditions: finds those a row may satisfy without evaluating all of them. A condition that can
 * only be true for rows whose field has one of a few values is indexed under these values. Candidates must still be
 * evaluated with `matches`.
 */
import type { Expr, Scalar } from './expr.ts'
import type { Row } from './matches.ts'

/** The condition is true only for rows whose `field` is one of `values`. */
interface Key {
  readonly field: string
  readonly values: readonly Scalar[]
}

/** A union of more keys costs more to index than it saves. */
const unionKeysMax = 8

export interface ExprIndex<T> {
  /** Adds an entry; adding it again has no effect. */
  add(expr: Expr, entry: T): void
  remove(expr: Expr, entry: T): void
  /** Adds to `found` every entry whose condition may be true for the row, including all that cannot be indexed. */
  candidates(row: Row, found: Set<T>): void
  readonly size: number
}

/** Keys of which at least one matches every row for which the condition is true; null if there are none. */
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

/** Of the keys of a conjunction's parts, those with the fewest values. */
function narrowest(parts: readonly (readonly Key[] | null)[]): readonly Key[] | null {
  let best: readonly Key[] | null = null
  for (const part of parts) if (part && (!best || breadth(part) < breadth(best))) best = part
  return best
}

export function createExprIndex<T>(): ExprIndex<T> {
  /** Entries by field and value. A `Map` distinguishes 1, '1' and true, as comparisons do. */
  const byField = new Map<string, Map<Scalar, Set<T>>>()
  const unindexed = new Set<T>()
  const all = new Set<T>()

  function forEachKey(expr: Expr, visit: (field: string, value: Scalar) => void): boolean {
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
      const isIndexed = forEachKey(expr, (field, value) => {
        const byValue = byField.get(field) ?? new Map<Scalar, Set<T>>()
        byField.set(field, byValue)
        const entries = byValue.get(value)
        if (entries) entries.add(entry)
        else byValue.set(value, new Set([entry]))
      })
      if (!isIndexed) unindexed.add(entry)
    },
    remove(expr, entry) {
      all.delete(entry)
      unindexed.delete(entry)
      forEachKey(expr, (field, value) => {
        const byValue = byField.get(field)
        const entries = byValue?.get(value)
        entries?.delete(entry)
        if (entries?.size === 0) byValue?.delete(value)
        if (byValue?.size === 0) byField.delete(field)
      })
    },
    candidates(row, found) {
      for (const entry of unindexed) found.add(entry)
      for (const [field, byValue] of byField) {
        const value = Object.hasOwn(row, field) ? row[field] : undefined
        const entries = byValue.get(value as Scalar)
        if (entries) for (const entry of entries) found.add(entry)
      }
    },
  }
}
