/**
 * Builds expressions: the values behind the types of `define-computed.ts`. They check what the compiler may not have
 * checked, the kinds of operands and the size, and throw `ExpressionError`. Part of the package's entry, whose types
 * must compile with any compiler: the imports are few.
 */
import { findDatetime } from '../../../../base/text/datetime.ts'
import { computedNodesMax, roundDigitsMax } from '../../../../limits/writes.ts'
import type { ComputedKind, Expression, StrictOperation } from '../../../../query/computed/expression.ts'
import type { CompareOp } from '../../../../query/expr.ts'
import type { BooleanExpression, DatetimeExpression, NumberExpression, TextExpression } from './define-computed.ts'

/** A mistake in an expression, as the message of an issue. */
export class ExpressionError extends Error {
  /** The word that is not one of the candidates, if that is the mistake. */
  readonly unknown: { readonly word: string; readonly candidates: readonly string[] } | null

  constructor(message: string, unknown: ExpressionError['unknown'] = null) {
    super(message)
    this.unknown = unknown
  }
}

/** An expression with what is known of it. */
export interface Built {
  readonly tree: Expression
  readonly kind: ComputedKind
  /** Nodes of the tree. */
  readonly size: number
}

/** By object, so that nothing else can be taken for an expression. */
const builtBy = new WeakMap<object, Built>()

export const findBuilt = (value: unknown): Built | undefined =>
  typeof value === 'object' && value !== null ? builtBy.get(value) : undefined

const kindNames: Readonly<Record<ComputedKind, string>> = {
  number: 'a number',
  text: 'a text',
  boolean: 'true or false',
  datetime: 'a datetime',
}

const constant = (value: string | number | boolean, kind: ComputedKind): Built => ({
  tree: { op: 'value', value },
  kind,
  size: 1,
})

/** NUL and lone surrogates, which no engine stores. */
const unstorable = /[\0\p{Surrogate}]/u

/** An operand that must be of a kind: an expression or a constant. */
function operand(value: unknown, kind: ComputedKind, operation: string): Built {
  const built = findBuilt(value)
  if (built?.kind === kind) return built
  if (!built && kind === 'number' && typeof value === 'number' && Number.isFinite(value)) return constant(value, kind)
  if (!built && kind === 'boolean' && typeof value === 'boolean') return constant(value, kind)
  if (!built && kind === 'text' && typeof value === 'string' && !unstorable.test(value)) return constant(value, kind)
  if (!built && kind === 'datetime' && typeof value === 'string') {
    const normal = findDatetime(value)
    if (normal !== null) return constant(normal, kind)
  }
  throw new ExpressionError(`"${operation}" needs ${kindNames[kind]}${built ? `, not ${kindNames[built.kind]}` : ''}`)
}

function combined(kind: ComputedKind, operands: readonly Built[], tree: Expression): object {
  const size = operands.reduce((sum, one) => sum + one.size, 1)
  if (size > computedNodesMax)
    throw new ExpressionError(`has more than ${computedNodesMax} operations, fields and constants`)
  return expose({ tree, kind, size })
}

function strict(op: StrictOperation, kind: ComputedKind, operands: readonly Built[]): object {
  return combined(kind, operands, { op, of: operands.map(({ tree }) => tree) })
}

type Method = (self: Built, ...given: readonly unknown[]) => object

/** An operation on `self` and one operand of each of the kinds. */
const operation =
  (op: StrictOperation, gives: ComputedKind, ...takes: readonly ComputedKind[]): Method =>
  (self, ...given) =>
    strict(op, gives, [self, ...takes.map((kind, at) => operand(given[at], kind, op))])

const equalities: readonly unknown[] = ['==', '!=']
const comparisons: readonly unknown[] = [...equalities, '<', '<=', '>', '>=']

const is: Method = (self, by, other) => {
  const known = self.kind === 'boolean' ? equalities : comparisons
  if (!known.includes(by)) throw new ExpressionError(`"is" needs one of ${known.join(' ')}`)
  const to = operand(other, self.kind, 'is')
  return combined('boolean', [self, to], { op: 'compare', by: by as CompareOp, of: [self.tree, to.tree] })
}

const orElse: Method = (self, other) => {
  const instead = operand(other, self.kind, 'orElse')
  return combined(self.kind, [self, instead], { op: 'orElse', of: [self.tree, instead.tree] })
}

const round: Method = (self, digits = 0) => {
  if (!Number.isInteger(digits) || (digits as number) < 0 || (digits as number) > roundDigitsMax)
    throw new ExpressionError(`"round" needs a number of decimals from 0 to ${roundDigitsMax}`)
  return strict('round', 'number', [self, constant(digits as number, 'number')])
}

const concat: Method = (self, ...others) =>
  expose(
    others.reduce<Built>((all, other) => {
      const both = strict('concat', 'text', [all, operand(other, 'text', 'concat')])
      return builtBy.get(both) as Built
    }, self),
  )

const common = {
  is,
  orElse,
  isNull: (self: Built) => combined('boolean', [self], { op: 'isNull', of: [self.tree] }),
}

const methods: Readonly<Record<ComputedKind, Readonly<Record<string, Method>>>> = {
  number: {
    ...common,
    plus: operation('plus', 'number', 'number'),
    minus: operation('minus', 'number', 'number'),
    times: operation('times', 'number', 'number'),
    dividedBy: operation('dividedBy', 'number', 'number'),
    round,
    floor: operation('floor', 'number'),
    ceil: operation('ceil', 'number'),
    abs: operation('abs', 'number'),
  },
  text: {
    ...common,
    lower: operation('lower', 'text'),
    upper: operation('upper', 'text'),
    trim: operation('trim', 'text'),
    concat,
    length: operation('length', 'number'),
  },
  boolean: {
    ...common,
    and: operation('and', 'boolean', 'boolean'),
    or: operation('or', 'boolean', 'boolean'),
    not: operation('not', 'boolean'),
  },
  datetime: {
    ...common,
    secondsSince: operation('secondsSince', 'number', 'datetime'),
    plusSeconds: operation('plusSeconds', 'datetime', 'number'),
  },
}

/** The object with the operations of an expression. */
function expose(built: Built): object {
  const known = methods[built.kind]
  const exposed = new Proxy(Object.freeze({}), {
    get(_, name) {
      if (typeof name === 'symbol') return undefined
      const method = Object.hasOwn(known, name) ? known[name] : undefined
      if (method) return (...given: readonly unknown[]) => method(built, ...given)
      throw new ExpressionError(`"${name}" is not an operation on ${kindNames[built.kind]}.`, {
        word: name,
        candidates: Object.keys(known),
      })
    },
  })
  builtBy.set(exposed, built)
  return exposed
}

/** A field of the row in an expression. */
export const exposeField = (name: string, kind: ComputedKind): object =>
  expose({ tree: { op: 'field', name, kind }, kind, size: 1 })

/** A branch of `when`: null, or of the kind of the other branch. */
const branch = (value: unknown, kind: ComputedKind): Built =>
  value === null ? { tree: { op: 'value', value: null }, kind, size: 1 } : operand(value, kind, 'when')

function kindOfConstant(value: unknown): ComputedKind | null {
  if (typeof value === 'number') return 'number'
  if (typeof value === 'boolean') return 'boolean'
  return typeof value === 'string' ? 'text' : null
}

/**
 * The second value where the condition is true, the third where it is false: `when(f.stock.is('>', 0), 'in stock',
 * 'sold out')`. Null where the condition is null.
 */
export function when(
  condition: BooleanExpression,
  yes: NumberExpression | number | null,
  no: NumberExpression | number | null,
): NumberExpression
export function when(
  condition: BooleanExpression,
  yes: TextExpression | string | null,
  no: TextExpression | string | null,
): TextExpression
export function when(
  condition: BooleanExpression,
  yes: BooleanExpression | boolean | null,
  no: BooleanExpression | boolean | null,
): BooleanExpression
export function when(
  condition: BooleanExpression,
  yes: DatetimeExpression | string | null,
  no: DatetimeExpression | string | null,
): DatetimeExpression
export function when(condition: unknown, yes: unknown, no: unknown): object {
  const kind = findBuilt(yes)?.kind ?? findBuilt(no)?.kind ?? kindOfConstant(yes) ?? kindOfConstant(no)
  if (kind === null) throw new ExpressionError('"when" needs a value beside null')
  const parts = [operand(condition, 'boolean', 'when'), branch(yes, kind), branch(no, kind)] as const
  return combined(kind, parts, { op: 'when', of: [parts[0].tree, parts[1].tree, parts[2].tree] })
}
