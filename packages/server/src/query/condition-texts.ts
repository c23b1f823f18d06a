/**
 * SQL texts of conditions that were built before. The rules and filters of an application have few shapes, and its
 * requests repeat them with other values: then the text is reused, which the engine also finds faster. Concerns
 * comparisons and null checks of declared fields, and what `and`, `or` and `not` make of them.
 */
import type { SqlText, SqlValue } from '../engines/sql/sql-text.ts'
import { conditionShapesMax } from '../limits/sqlite.ts'
import { type Expr, fieldsOf, type Scalar } from './expr.ts'
import type { Table } from './table.ts'

interface Shape {
  readonly expr: Expr
  readonly text: string
}

/** Returns the SQL of a condition on a table; calls `build` for one whose text is not known. */
export type ConditionTexts = (expr: Expr, table: Table, build: () => SqlText) => SqlText

/** `bind` is the parameter for a value. */
export function createConditionTexts(bind: (value: Scalar) => SqlValue): ConditionTexts {
  const shapes = new WeakMap<Table, Shape[]>()

  return (expr, table, build) => {
    const known = shapes.get(table) ?? []
    for (const shape of known) {
      const values: SqlValue[] = []
      if (hasShape(expr, shape.expr, (value) => values.push(bind(value)))) return { text: shape.text, values }
    }
    const built = build()
    if (isReusable(expr, table, built, bind))
      shapes.set(table, [{ expr, text: built.text }, ...known].slice(0, conditionShapesMax))
    return built
  }
}

/** Whether two conditions differ in the values of comparisons only; calls `onValue` for each value of the first. */
function hasShape(expr: Expr, shape: Expr, onValue: (value: Scalar) => void): boolean {
  if (expr.kind === 'compare') {
    if (shape.kind !== 'compare' || expr.field !== shape.field || expr.op !== shape.op) return false
    if (typeof expr.value === 'object') return false
    onValue(expr.value)
    return true
  }
  if (expr.kind === 'null') return shape.kind === 'null' && expr.field === shape.field && expr.negated === shape.negated
  if (expr.kind === 'not') return shape.kind === 'not' && hasShape(expr.of, shape.of, onValue)
  if (expr.kind !== 'and' && expr.kind !== 'or') return false
  if (shape.kind !== expr.kind || expr.of.length !== shape.of.length) return false
  return expr.of.every((part, at) => hasShape(part, shape.of[at] as Expr, onValue))
}

/**
 * Whether the text depends on the shape only and its parameters are the values of the comparisons, in their order. The
 * text for an undeclared field depends on the type of the value.
 */
function isReusable(expr: Expr, { fields }: Table, { values }: SqlText, bind: (value: Scalar) => SqlValue): boolean {
  const found: SqlValue[] = []
  const isPlain =
    hasShape(expr, expr, (value) => found.push(bind(value))) && [...fieldsOf(expr)].every((name) => fields.has(name))
  return isPlain && found.length === values.length && found.every((value, at) => Object.is(value, values[at]))
}
