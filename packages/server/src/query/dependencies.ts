/**
 * What a condition with `exists` depends on, as trees: which rows of the judged table a change of another table may
 * concern, and the condition as it stood before changes that have happened since. Pure; asks no database.
 */
import type { CompareOp, Expr } from './expr.ts'
import { allOf, always, anyOf, negate, never } from './expr.ts'
import { asksOtherTables, bindOuter, fieldOf, type Row, settle } from './matches.ts'

type Exists = Extract<Expr, { kind: 'exists' }>

/** One `exists` of a condition, at whatever depth. */
export interface Dependency {
  /** The table it reads, of the same database. */
  readonly table: string
  readonly where: Expr
  /** The rows of the judged table that a row of `table` may concern: those whose `exists` it may satisfy. */
  concerns(row: Row): Expr
}

/** Rows of other tables as they were: table to record id to the row, null where there was none. */
export type Past = ReadonlyMap<string, ReadonlyMap<string, Row | null>>

export const noPast: Past = new Map()

/** Every `exists` of a tree, nested ones included. */
export function dependenciesOf(expr: Expr, widen: (inner: Expr) => Expr = (inner) => inner): readonly Dependency[] {
  switch (expr.kind) {
    case 'and':
    case 'or':
      return expr.of.flatMap((part) => dependenciesOf(part, widen))
    case 'not':
      return dependenciesOf(expr.of, widen)
    case 'exists': {
      const { table, where } = expr
      // A nested `exists` concerns rows of this table, and these concern rows of the judged one.
      const nested = dependenciesOf(where, (inner) => {
        const relaxed = allOf([inner, withoutExists(where)])
        return relaxed.kind === 'const' && !relaxed.value ? never : widen({ kind: 'exists', table, where: relaxed })
      })
      return [{ table, where, concerns: (row) => widen(bindInner(withoutExists(where), row)) }, ...nested]
    }
    default:
      return []
  }
}

/** A tree without `exists` that is true wherever `expr` may be. */
function withoutExists(expr: Expr): Expr {
  if (expr.kind === 'exists') return always
  if (expr.kind === 'and') return allOf(expr.of.map(withoutExists))
  if (expr.kind === 'or') return anyOf(expr.of.map(withoutExists))
  return expr.kind === 'not' && asksOtherTables(expr.of) ? always : expr
}

const flipped: Readonly<Record<CompareOp, CompareOp>> = {
  '==': '==',
  '!=': '!=',
  '>': '<',
  '>=': '<=',
  '<': '>',
  '<=': '>=',
}

/**
 * The inside of an `exists` with its row given: a condition on the row outside. What is left of nested `exists` refers
 * to no row.
 */
export function bindInner(where: Expr, row: Row): Expr {
  switch (where.kind) {
    case 'compare': {
      if (typeof where.value !== 'object') return settle(where, row)
      const value = fieldOf(row, where.field)
      const comparable = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
      return comparable ? { kind: 'compare', field: where.value.outer, op: flipped[where.op], value } : never
    }
    case 'and':
      return allOf(where.of.map((part) => bindInner(part, row)))
    case 'or':
      return anyOf(where.of.map((part) => bindInner(part, row)))
    case 'not':
      return negate(bindInner(where.of, row))
    case 'exists': {
      const bound = bindOuter(where.where, row)
      return bound.kind === 'const' && !bound.value ? never : { ...where, where: bound }
    }
    default:
      return settle(where, row)
  }
}

/**
 * The condition as it was while `past` held: each `exists` leaves the rows that have changed since out of its table and
 * takes their earlier state instead.
 */
export function asOf(expr: Expr, past: Past): Expr {
  if (past.size === 0) return expr
  switch (expr.kind) {
    case 'and':
      return allOf(expr.of.map((part) => asOf(part, past)))
    case 'or':
      return anyOf(expr.of.map((part) => asOf(part, past)))
    case 'not':
      return negate(asOf(expr.of, past))
    case 'exists':
      return existsAsOf(expr, past)
    default:
      return expr
  }
}

function existsAsOf({ kind, table, where }: Exists, past: Past): Expr {
  const inner = asOf(where, past)
  const rows = past.get(table)
  if (!rows || rows.size === 0) return { kind, table, where: inner }
  const others: Expr = { kind: 'in', field: 'id', values: [...rows.keys()], negated: true }
  const earlier = [...rows.values()].map((row) => (row ? bindInner(inner, row) : never))
  return anyOf([{ kind, table, where: allOf([inner, others]) }, mergeEqualities(earlier)])
}

/**
 * OR of the parts. Equalities of one field become one list, so that the tree of a thousand memberships is as small as
 * that of one.
 */
export function mergeEqualities(parts: readonly Expr[]): Expr {
  const byField = new Map<string, Set<string | number | boolean>>()
  const rest: Expr[] = []
  for (const part of parts)
    if (part.kind === 'compare' && part.op === '==' && typeof part.value !== 'object') {
      const values = byField.get(part.field) ?? new Set()
      byField.set(part.field, values.add(part.value))
    } else rest.push(part)
  const lists = [...byField].map(
    ([field, values]): Expr => ({ kind: 'in', field, values: [...values], negated: false }),
  )
  return anyOf([...lists, ...rest])
}

/** How many parts the outermost OR of a tree has. */
export const partsOf = (expr: Expr): number => (expr.kind === 'or' ? expr.of.length : 1)
