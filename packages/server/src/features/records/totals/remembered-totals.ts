/**
 * The totals that are kept up to date with every commit. A condition that requires a field to have one value, such as
 * the records of one author, is found by that value, so that a write costs the same whether a few or thousands of such
 * totals are known. Each other condition is matched with every write, so there may be few of them.
 */
import { createLru, type Lru } from '../../../base/concurrency/lru.ts'
import {
  pinnedFieldsMax,
  pinnedTotalsMax,
  pinnedTotalsPerValueMax,
  rememberedTotalsMax,
} from '../../../limits/sqlite.ts'
import type { Expr } from '../../../query/expr.ts'
import { fieldOf, matches, type Row } from '../../../query/matches.ts'

export interface Remembered {
  readonly expr: Expr
  total: number
}

/** The totals of one table. */
export interface TableTotals {
  find(key: string): Remembered | undefined
  remember(key: string, expr: Expr, total: number): void
  /** To be called with the row before and after each change; null where there is none. */
  apply(before: Row | null, after: Row | null): void
}

/** A value that a condition requires. */
interface Pin {
  readonly field: string
  readonly value: string | number
}

/** A total that is found by a value. */
interface Pinned {
  readonly remembered: Remembered
  readonly pin: Pin
}

/** The first field that must equal a text or a number for the condition to be true; null if there is none. */
function pinOf(expr: Expr): Pin | null {
  for (const part of expr.kind === 'and' ? expr.of : [expr]) {
    if (part.kind !== 'compare' || part.op !== '==') continue
    const { field, value } = part
    if (typeof value === 'string' || typeof value === 'number') return { field, value }
  }
  return null
}

/** The totals of one field by the value that their conditions require. */
type Buckets = Map<unknown, Set<Remembered>>

/** Creates the totals of tables, which share a bound. */
export function createRememberedTotals(): () => TableTotals {
  let tables = 0
  const pinned: Lru<string, Pinned & { forget(): void }> = createLru(pinnedTotalsMax, (one) => one.forget())

  return () => {
    const prefix = `${++tables}\n`
    const others = createLru<string, Remembered>(rememberedTotalsMax)
    const fields = new Map<string, Buckets>()

    /** Whether there is no room for another total of the value. */
    const isFull = ({ field, value }: Pin): boolean => {
      const buckets = fields.get(field)
      return buckets ? (buckets.get(value)?.size ?? 0) >= pinnedTotalsPerValueMax : fields.size >= pinnedFieldsMax
    }

    function add({ remembered, pin: { field, value } }: Pinned): void {
      const buckets: Buckets = fields.get(field) ?? new Map()
      const bucket = buckets.get(value) ?? new Set()
      fields.set(field, buckets.set(value, bucket.add(remembered)))
    }

    function remove({ remembered, pin: { field, value } }: Pinned): void {
      const buckets = fields.get(field)
      const bucket = buckets?.get(value)
      bucket?.delete(remembered)
      if (bucket?.size === 0) buckets?.delete(value)
      if (buckets?.size === 0) fields.delete(field)
    }

    function adjust(row: Row, by: 1 | -1): void {
      const adjustOne = (one: Remembered): void => {
        if (matches(one.expr, row)) one.total += by
      }
      for (const one of others.values()) adjustOne(one)
      for (const [field, buckets] of fields) for (const one of buckets.get(fieldOf(row, field)) ?? []) adjustOne(one)
    }

    return {
      find: (key) => others.get(key) ?? pinned.get(prefix + key)?.remembered,
      remember(key, expr, total) {
        const remembered = { expr, total }
        const pin = pinOf(expr)
        if (!pin || isFull(pin)) return others.set(key, remembered)
        const one = { remembered, pin }
        add(one)
        pinned.set(prefix + key, { ...one, forget: () => remove(one) })
      },
      apply(before, after) {
        if (before) adjust(before, -1)
        if (after) adjust(after, 1)
      },
    }
  }
}
