/**
 * Dependency analysis of conditions with `exists`: which rows of the filtered table a change of another table can
 * affect, and the condition as of an earlier state of the other tables. Pure; queries no database.
 */
import type { CompareOp, Expr } from './expr.ts'
import { allOf, always, anyOf, negate, never } from './expr.ts'
import { bindOuter, fieldOf, partiallyEvaluate, type Row, readsOtherTables } from './matches.ts'

type Exists = Extract<Expr, { kind: 'exists' }>

/** One `exists` of a condition, at any depth. */
export interface Dependency {
  /** The table it reads, of the same database. */
  readonly table: string
  readonly where: Expr
  /** The rows of the filtered table that a row of `table` can affect: those whose `exists` it can satisfy. */
  affectedBy(row: Row): Expr
}

/** Earlier states of rows of other tables, by table and record id; null if the row did not exist. */
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
      // A nested `exists` affects rows of this table, and these affect rows of the filtered one.
      const nested = dependenciesOf(where, (inner) => {
        const relaxed = allOf([inner, withoutExists(where)])
        return relaxed.kind === 'const' && !relaxed.value ? never : widen({ kind: 'exists', table, where: relaxed })
      })
      return [{ table, where, affectedBy: (row) => widen(bindInner(withoutExists(where), row)) }, ...nested]
    }
    default:
      return []
  }
}

/** A tree without `exists` that is true for every row for which `expr` can be true. */
function withoutExists(expr: Expr): Expr {
  if (expr.kind === 'exists') return always
  if (expr.kind === 'and') return allOf(expr.of.map(withoutExists))
  if (expr.kind === 'or') return anyOf(expr.of.map(withoutExists))
  return expr.kind === 'not' && readsOtherTables(expr.of) ? always : expr
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
 * Binds the inner row of an `exists`. The result is a condition on the outer row; nested `exists` that remain in it
 * refer to no row.
 */
export function bindInner(where: Expr, row: Row): Expr {
  switch (where.kind) {
    case 'compare': {
      if (typeof where.value !== 'object') return partiallyEvaluate(where, row)
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
      return partiallyEvaluate(where, row)
  }
}

/**
 * The condition as of the earlier state `past`: each `exists` excludes the rows that have changed since from its table
 * and uses their earlier state instead.
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
 * OR of the parts. Equalities on one field are merged into one `in`, so that the tree of a thousand memberships is as
 * small as the tree of one.
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

/** Number of alternatives in the outermost OR of a tree. */
export const partsOf = (expr: Expr): number => (expr.kind === 'or' ? expr.of.length : 1)
