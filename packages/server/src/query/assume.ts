/**
 * Simplifies an expression tree under assumptions about what its records contain: whether fields equal certain values.
 * The result is a constant where the assumptions decide it. Pure.
 */
import { allOf, always, anyOf, type Expr, isNever, negate, never } from './expr.ts'

/** Whether the fields that are compared with the value equal it, `isInside` an `exists` or not; null where unknown. */
export type Assumption = (value: string, isInside: boolean) => boolean | null

const isNotNull = (field: string): Expr => ({ kind: 'null', field, negated: true })

function assumeCompare(expr: Extract<Expr, { kind: 'compare' }>, equals: boolean | null): Expr {
  if (equals === null || (expr.op !== '==' && expr.op !== '!=')) return expr
  if (expr.op === '==') return equals ? always : never
  return equals ? never : isNotNull(expr.field)
}

function assumeIn(expr: Extract<Expr, { kind: 'in' }>, equals: (value: unknown) => boolean | null): Expr {
  const { field, values, negated } = expr
  const known = values.map(equals)
  if (known.includes(true)) return negated ? never : always
  const left = values.filter((_, at) => known[at] !== false)
  if (left.length > 0) return { ...expr, values: left }
  return negated ? isNotNull(field) : never
}

export function assume(expr: Expr, assumption: Assumption): Expr {
  const visit = (one: Expr, isInside: boolean): Expr => {
    const equals = (value: unknown) => (typeof value === 'string' ? assumption(value, isInside) : null)
    switch (one.kind) {
      case 'compare':
        return assumeCompare(one, equals(one.value))
      case 'contains': {
        const contains = equals(one.value)
        return contains === null ? one : contains ? always : never
      }
      case 'in':
        return assumeIn(one, equals)
      case 'and':
        return allOf(one.of.map((part) => visit(part, isInside)))
      case 'or':
        return anyOf(one.of.map((part) => visit(part, isInside)))
      case 'not':
        return negate(visit(one.of, isInside))
      case 'exists': {
        const where = visit(one.where, true)
        return isNever(where) ? never : { ...one, where }
      }
      default:
        return one
    }
  }
  return visit(expr, false)
}

/** The text values that a tree compares with. */
export function valuesOf(expr: Expr): ReadonlySet<string> {
  const values = new Set<string>()
  const add = (value: unknown): void => {
    if (typeof value === 'string') values.add(value)
  }
  const visit = (one: Expr): void => {
    if (one.kind === 'and' || one.kind === 'or') one.of.forEach(visit)
    else if (one.kind === 'not') visit(one.of)
    else if (one.kind === 'exists') visit(one.where)
    else if (one.kind === 'in') one.values.forEach(add)
    else if (one.kind === 'compare' || one.kind === 'contains') add(one.value)
  }
  visit(expr)
  return values
}
