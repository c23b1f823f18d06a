/**
 * The tree in memory: judges one row (API-level values: booleans as booleans, JSON parsed). One of the tree's back
 * ends; a property test holds it to `to-sql`.
 */
import { compareText } from '../base/text/text.ts'
import { allOf, always, anyOf, type CompareOp, type Expr, negate, never, type OuterField, type Scalar } from './expr.ts'

export type Row = Readonly<Record<string, unknown>>

export const fieldOf = (row: Row, field: string): unknown => (Object.hasOwn(row, field) ? row[field] : undefined)

/** Less than, equal, greater as a number; null where the types differ. */
function order(a: unknown, b: Scalar): number | null {
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b)
  if (typeof a === 'number' && typeof b === 'number') return a - b
  if (typeof a === 'boolean' && typeof b === 'boolean') return Number(a) - Number(b)
  return null
}

function compare(value: unknown, op: CompareOp, other: Scalar): boolean {
  const found = order(value, other)
  if (found === null) return false
  switch (op) {
    case '==':
      return found === 0
    case '!=':
      return found !== 0
    case '>':
      return found > 0
    case '>=':
      return found >= 0
    case '<':
      return found < 0
    case '<=':
      return found <= 0
  }
}

function contains(value: unknown, part: Scalar): boolean {
  if (Array.isArray(value)) return value.some((element) => order(element, part) === 0)
  return typeof value === 'string' && typeof part === 'string' && value.includes(part)
}

const constant = (value: boolean): Expr => (value ? always : never)

const isOuter = (value: Scalar | OuterField): value is OuterField => typeof value === 'object'

/** Replaces references to the judged row by its values; a missing value makes its comparison false. */
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
 * Judges everything the row alone decides. The result is a constant, or what is left to ask the database: a tree of
 * `exists` whose references to the row have become values.
 */
export function settle(expr: Expr, row: Row): Expr {
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
    case 'in': {
      const value = fieldOf(row, expr.field)
      if (value === null || value === undefined) return never
      return constant(expr.values.some((one) => order(value, one) === 0) !== expr.negated)
    }
    case 'and':
      return allOf(expr.of.map((part) => settle(part, row)))
    case 'or':
      return anyOf(expr.of.map((part) => settle(part, row)))
    case 'not':
      return negate(settle(expr.of, row))
    case 'exists': {
      const where = bindOuter(expr.where, row)
      return where.kind === 'const' && !where.value ? never : { ...expr, where }
    }
  }
}

/**
 * Whether a tree without `exists` is true of the row. Throws where the database would have to be asked: use `settle`.
 */
export function matches(expr: Expr, row: Row): boolean {
  const settled = settle(expr, row)
  if (settled.kind !== 'const') throw new Error('This condition needs the database')
  return settled.value
}

/** Whether some part of the tree asks another table. */
export function asksOtherTables(expr: Expr): boolean {
  if (expr.kind === 'exists') return true
  if (expr.kind === 'and' || expr.kind === 'or') return expr.of.some(asksOtherTables)
  return expr.kind === 'not' && asksOtherTables(expr.of)
}

type Exists = Extract<Expr, { kind: 'exists' }>

/** What must not be there for the tree to be true. */
export function absencesIn(expr: Expr, isNegated = false): readonly Exists[] {
  if (expr.kind === 'exists') return isNegated ? [expr] : []
  if (expr.kind === 'and' || expr.kind === 'or') return expr.of.flatMap((part) => absencesIn(part, isNegated))
  return expr.kind === 'not' ? absencesIn(expr.of, !isNegated) : []
}
