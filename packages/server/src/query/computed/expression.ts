/**
 * The expression of a computed field: a tree of fields of the row, constants and operations. `evaluate.ts` computes its
 * value. Imports nothing that needs a recent compiler: the types of configurations are made of it.
 */
import type { CompareOp } from '../expr.ts'

export type ComputedValue = string | number | boolean

/** `text` is the kind of fields of type `string` and `text`. */
export type ComputedKind = 'number' | 'text' | 'boolean' | 'datetime'

/** Operations whose value is null where an operand is null. */
export type StrictOperation =
  | 'plus'
  | 'minus'
  | 'times'
  | 'dividedBy'
  | 'round'
  | 'floor'
  | 'ceil'
  | 'abs'
  | 'lower'
  | 'upper'
  | 'trim'
  | 'concat'
  | 'length'
  | 'secondsSince'
  | 'plusSeconds'
  | 'and'
  | 'or'
  | 'not'

export type Expression =
  | { readonly op: 'field'; readonly name: string; readonly kind: ComputedKind }
  /** Null is a branch of `when`. */
  | { readonly op: 'value'; readonly value: ComputedValue | null }
  | { readonly op: StrictOperation; readonly of: readonly Expression[] }
  | { readonly op: 'compare'; readonly by: CompareOp; readonly of: readonly [Expression, Expression] }
  | { readonly op: 'isNull'; readonly of: readonly [Expression] }
  /** The first operand that is not null. */
  | { readonly op: 'orElse'; readonly of: readonly [Expression, Expression] }
  /** A condition, and the values where it is true and where it is false; null where it is null. */
  | { readonly op: 'when'; readonly of: readonly [Expression, Expression, Expression] }

/** A field of a table with its expression. */
export interface ComputedField {
  readonly name: string
  readonly expression: Expression
  readonly operands: ReadonlySet<string>
  /** Changes with the expression, and with those of the computed fields that it reads. */
  readonly fingerprint: string
}

/** The fields of the row that an expression reads. */
export function operandsOf(expression: Expression): ReadonlySet<string> {
  const names = new Set<string>()
  const visit = (one: Expression): void => {
    if (one.op === 'field') names.add(one.name)
    else if (one.op !== 'value') for (const operand of one.of) visit(operand)
  }
  visit(expression)
  return names
}
