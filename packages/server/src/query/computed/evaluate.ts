/**
 * The value of an expression for a row. The only place that computes, so that a value does not depend on the SQL
 * engine.
 *
 * Every operation has a value for all operands, so that a computed field never refuses a write: null where an operand
 * is null, and where the result would not be a finite number, a datetime of the years 0000 to 9999, or a text of
 * bounded length.
 */
import { datetimeMaxMs, datetimeMinMs, formatDatetime } from '../../base/text/datetime.ts'
import { codePointLength, compareText } from '../../base/text/text.ts'
import { computedTextCharsMax } from '../../limits/writes.ts'
import { type CompareOp, isOrdered } from '../expr.ts'
import { fieldOf, type Row } from '../matches.ts'
import type { ComputedKind, ComputedValue, Expression, StrictOperation } from './expression.ts'

const operations = {
  plus: (a: number, b: number) => a + b,
  minus: (a: number, b: number) => a - b,
  times: (a: number, b: number) => a * b,
  dividedBy: (a: number, b: number) => (b === 0 ? null : a / b),
  // Of the exact value of the double; a half goes away from zero.
  round: (a: number, digits: number) => Number(a.toFixed(digits)),
  floor: Math.floor,
  ceil: Math.ceil,
  abs: Math.abs,
  lower: (a: string) => a.toLowerCase(),
  upper: (a: string) => a.toUpperCase(),
  trim: (a: string) => a.trim(),
  concat: (a: string, b: string) => a + b,
  length: codePointLength,
  secondsSince: (a: string, b: string) => (Date.parse(a) - Date.parse(b)) / 1000,
  plusSeconds(a: string, seconds: number) {
    const ms = Date.parse(a) + Math.round(seconds * 1000)
    return ms >= datetimeMinMs && ms <= datetimeMaxMs ? formatDatetime(ms) : null
  },
  and: (a: boolean, b: boolean) => a && b,
  or: (a: boolean, b: boolean) => a || b,
  not: (a: boolean) => !a,
} satisfies Record<StrictOperation, (...operands: never) => ComputedValue | null>

const typeOf: Readonly<Record<ComputedKind, string>> = {
  number: 'number',
  text: 'string',
  boolean: 'boolean',
  datetime: 'string',
}

/** A result as both engines store it. */
function storable(value: ComputedValue | null): ComputedValue | null {
  if (typeof value === 'string') return value.length > computedTextCharsMax ? null : value
  if (typeof value !== 'number') return value
  if (!Number.isFinite(value)) return null
  // Engines differ in whether they keep the sign of zero.
  return value === 0 ? 0 : value
}

function compare(by: CompareOp, a: ComputedValue, b: ComputedValue): boolean {
  return isOrdered(by, typeof a === 'string' ? compareText(a, b as string) : Number(a) - Number(b))
}

/** The value of an expression for a row of API-level values. */
export function evaluate(expression: Expression, row: Row): ComputedValue | null {
  switch (expression.op) {
    case 'field': {
      const value = fieldOf(row, expression.name)
      // Of the type that the operations take, whatever the row is.
      return typeof value === typeOf[expression.kind] ? (value as ComputedValue) : null
    }
    case 'value':
      return expression.value
    case 'isNull':
      return evaluate(expression.of[0], row) === null
    case 'orElse':
      return evaluate(expression.of[0], row) ?? evaluate(expression.of[1], row)
    case 'when': {
      const [condition, yes, no] = expression.of
      const isTrue = evaluate(condition, row)
      return isTrue === null ? null : evaluate(isTrue ? yes : no, row)
    }
    case 'compare': {
      const [a, b] = expression.of.map((operand) => evaluate(operand, row))
      return a === null || a === undefined || b === null || b === undefined ? null : compare(expression.by, a, b)
    }
    default: {
      const values: ComputedValue[] = []
      for (const operand of expression.of) {
        const value = evaluate(operand, row)
        if (value === null) return null
        values.push(value)
      }
      // What built the tree has checked the kinds of the operands.
      const operation = operations[expression.op] as (...values: ComputedValue[]) => ComputedValue | null
      return storable(operation(...values))
    }
  }
}
