/**
 * Evaluates the expression tree in memory, on one row of API-level values (booleans as booleans, JSON parsed). A
 * property test checks that it agrees with the SQL back end, `to-sql`.
 */
import { compareText } from '../base/text/text.ts'
import {
  allOf,
  always,
  anyOf,
  type CompareOp,
  type Expr,
  isOrdered,
  negate,
  never,
  type OuterField,
  type Scalar,
} from './expr.ts'
import { isInArea } from './geo/area.ts'

export type Row = Readonly<Record<string, unknown>>

export const fieldOf = (row: Row, field: string): unknown => (Object.hasOwn(row, field) ? row[field] : undefined)

/** Negative, zero or positive, as `a` is less than, equal to or greater than `b`; null if the types differ. */
function order(a: unknown, b: Scalar): number | null {
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b)
  if (typeof a === 'number' && typeof b === 'number') return a - b
  if (typeof a === 'boolean' && typeof b === 'boolean') return Number(a) - Number(b)
  return null
}

function compare(value: unknown, op: CompareOp, other: Scalar): boolean {
  const ordering = order(value, other)
  return ordering !== null && isOrdered(op, ordering)
}

function contains(value: unknown, part: Scalar): boolean {
  if (Array.isArray(value)) return value.some((element) => order(element, part) === 0)
  return typeof value === 'string' && typeof part === 'string' && value.includes(part)
}

const constant = (value: boolean): Expr => (value ? always : never)

const isOuter = (value: Scalar | OuterField): value is OuterField => typeof value === 'object'

/** Replaces references to the outer row with its values; a comparison with a missing value becomes false. */
export function bindOuter(expr: Expr, row: Row): Expr {
  switch (expr.kind) {
    case 'compare': {
      if (!isOuter(expr.value)) return expr
      const value = fieldOf(row, expr.value.outer)
      const comparable = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
      return comparable ? { ...expr, value } : never
    }
    case 'and':
      return allOf(expr.of.map((part) => bindOuter(part, row)))
    case 'or':
      return anyOf(expr.of.map((part) => bindOuter(part, row)))
    case 'not':
      return negate(bindOuter(expr.of, row))
    default:
      return expr
  }
}

/**
 * Evaluates everything that the row alone decides. The result is a constant, or a residual tree of `exists` for the
 * database to evaluate, whose references to the row are replaced with values.
 */
export function partiallyEvaluate(expr: Expr, row: Row): Expr {
  switch (expr.kind) {
    case 'const':
      return expr
    case 'null': {
      const value = fieldOf(row, expr.field)
      return constant((value === null || value === undefined) !== expr.negated)
    }
    case 'compare':
      return constant(!isOuter(expr.value) && compare(fieldOf(row, expr.field), expr.op, expr.value))
    case 'contains':
      return constant(contains(fieldOf(row, expr.field), expr.value))
    case 'geo':
      return constant(isInArea(fieldOf(row, expr.field), expr.area))
    case 'in': {
      const value = fieldOf(row, expr.field)
      if (value === null || value === undefined) return never
      return constant(expr.values.some((one) => order(value, one) === 0) !== expr.negated)
    }
    case 'and':
      return allOf(expr.of.map((part) => partiallyEvaluate(part, row)))
    case 'or':
      return anyOf(expr.of.map((part) => partiallyEvaluate(part, row)))
    case 'not':
      return negate(partiallyEvaluate(expr.of, row))
    case 'exists': {
      const where = bindOuter(expr.where, row)
      return where.kind === 'const' && !where.value ? never : { ...expr, where }
    }
  }
}

/**
 * Whether a tree without `exists` is true for the row. Throws if the database has to be queried; use
 * `partiallyEvaluate` for such trees.
 */
export function matches(expr: Expr, row: Row): boolean {
  const residual = partiallyEvaluate(expr, row)
  if (residual.kind !== 'const') throw new Error('A condition with exists cannot be evaluated in memory')
  return residual.value
}

/** Whether the tree contains an `exists`. */
export function readsOtherTables(expr: Expr): boolean {
  if (expr.kind === 'exists') return true
  if (expr.kind === 'and' || expr.kind === 'or') return expr.of.some(readsOtherTables)
  return expr.kind === 'not' && readsOtherTables(expr.of)
}

type Exists = Extract<Expr, { kind: 'exists' }>

/** The `exists` under a negation: rows that must be absent for the tree to be true. */
export function negatedExists(expr: Expr, isNegated = false): readonly Exists[] {
  if (expr.kind === 'exists') return isNegated ? [expr] : []
  if (expr.kind === 'and' || expr.kind === 'or') return expr.of.flatMap((part) => negatedExists(part, isNegated))
  return expr.kind === 'not' ? negatedExists(expr.of, !isNegated) : []
}
