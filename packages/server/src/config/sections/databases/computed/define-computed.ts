/**
 * Types of the expressions of computed fields: what `computed: (f) => …` is given and returns. `build-expression.ts`
 * has the values behind them.
 */
import type { CompareOp } from '../../../../query/expr.ts'

declare const resultTag: unique symbol

/** An expression over the fields of one row. */
interface Expression<Result> {
  readonly [resultTag]?: Result
  /** Whether the value is null; never null itself. */
  isNull(): BooleanExpression
}

/** Null where a value is null, as all operations except `orElse`, `isNull` and the branches of `when`. */
export interface NumberExpression extends Expression<number> {
  plus(other: NumberExpression | number): NumberExpression
  minus(other: NumberExpression | number): NumberExpression
  times(other: NumberExpression | number): NumberExpression
  /** Null for a division by zero. */
  dividedBy(other: NumberExpression | number): NumberExpression
  /** To a number of decimals, 0 to 15; halves away from zero. */
  round(digits?: number): NumberExpression
  /** The greatest integer that is not greater. */
  floor(): NumberExpression
  /** The least integer that is not less. */
  ceil(): NumberExpression
  abs(): NumberExpression
  is(op: CompareOp, other: NumberExpression | number): BooleanExpression
  /** The value, or `other` where it is null. */
  orElse(other: NumberExpression | number): NumberExpression
}

/** Of fields of type `string` and `text`. */
export interface TextExpression extends Expression<string> {
  lower(): TextExpression
  upper(): TextExpression
  /** Without white space at both ends. */
  trim(): TextExpression
  /** Null where the text would be longer than 65,536 characters. */
  concat(...others: (TextExpression | string)[]): TextExpression
  /** In characters (code points). */
  length(): NumberExpression
  /** Compares by code point. */
  is(op: CompareOp, other: TextExpression | string): BooleanExpression
  /** The value, or `other` where it is null. */
  orElse(other: TextExpression | string): TextExpression
}

export interface BooleanExpression extends Expression<boolean> {
  and(other: BooleanExpression | boolean): BooleanExpression
  or(other: BooleanExpression | boolean): BooleanExpression
  not(): BooleanExpression
  is(op: '==' | '!=', other: BooleanExpression | boolean): BooleanExpression
  /** The value, or `other` where it is null. */
  orElse(other: BooleanExpression | boolean): BooleanExpression
}

/** Constants are timestamps such as `2026-01-31T12:00:00Z`. */
export interface DatetimeExpression extends Expression<'datetime'> {
  /** Negative if `other` is later; with milliseconds as decimals. */
  secondsSince(other: DatetimeExpression | string): NumberExpression
  /** Null beyond the years 0000 to 9999. */
  plusSeconds(seconds: NumberExpression | number): DatetimeExpression
  is(op: CompareOp, other: DatetimeExpression | string): BooleanExpression
  /** The value, or `other` where it is null. */
  orElse(other: DatetimeExpression | string): DatetimeExpression
}

/** A computed field, whose type the compiler does not know: it is checked at start. */
// biome-ignore lint/suspicious/noExplicitAny: its expression has any of the operations.
type OtherComputed = any

interface ExpressionByType {
  readonly string: TextExpression
  readonly text: TextExpression
  readonly number: NumberExpression
  readonly boolean: BooleanExpression
  readonly datetime: DatetimeExpression
}

type ExpressionOf<Type> = unknown extends Type
  ? OtherComputed
  : Type extends keyof ExpressionByType
    ? ExpressionByType[Type]
    : never

/** The fields of a row in an expression, by the types of the fields of the table. */
export type ComputedOperands<Types> = { readonly [F in keyof Types]-?: ExpressionOf<Types[F]> } & {
  readonly id: TextExpression
  readonly createdAt: DatetimeExpression
  readonly updatedAt: DatetimeExpression
}

/** The kinds of expression that a field of a type can have. */
export type ResultOf<Type> = Type extends keyof ExpressionByType ? ExpressionByType[Type] : never
