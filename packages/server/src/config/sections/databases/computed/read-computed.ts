/** Reads the computed fields of a schema: their expressions in order, and what is wrong with them. */
import { computedFieldsMax } from '../../../../limits/writes.ts'
import { orderComputed } from '../../../../query/computed/computed-fields.ts'
import type { ComputedField, ComputedKind, Expression } from '../../../../query/computed/expression.ts'
import { createdAtField, type FieldType, idField, updatedAtField } from '../../../../query/table.ts'
import { type ConfigIssue, type Path, suggest } from '../../../issues.ts'
import { ExpressionError, exposeField, findBuilt } from './build-expression.ts'

/** Field name to its type and what computes it; null for a field whose declaration has no shape. */
export type Declared = ReadonlyMap<string, { readonly type: FieldType; readonly computed?: Compute | undefined } | null>

export type Compute = (operands: object) => unknown

const kinds: Readonly<Partial<Record<FieldType, ComputedKind>>> = {
  string: 'text',
  text: 'text',
  number: 'number',
  boolean: 'boolean',
  datetime: 'datetime',
}

const builtIn = [idField, createdAtField, updatedAtField]

/** The argument of `computed`: the fields of the row by name. */
function operandsOf(fields: Declared): object {
  const types = new Map<string, FieldType | null>(builtIn.map(({ name, type }) => [name, type]))
  for (const [name, field] of fields) types.set(name, field?.type ?? null)
  return new Proxy(Object.freeze({}), {
    get(_, name) {
      if (typeof name === 'symbol') return undefined
      const type = types.get(name)
      if (type === undefined)
        throw new ExpressionError(`"${name}" is not a field of this table.`, {
          word: name,
          candidates: [...types.keys()],
        })
      const kind = type === null ? undefined : kinds[type]
      if (!kind) throw new ExpressionError(`"${name}" is of type ${type}, which expressions cannot read`)
      return exposeField(name, kind)
    },
  })
}

/** Throws `ExpressionError` and whatever the function throws. */
function build(compute: Compute, type: FieldType, operands: object): Expression {
  const built = findBuilt(compute(operands))
  if (!built) throw new ExpressionError('must return an expression of the fields, such as f.price.times(f.quantity)')
  if (built.kind !== kinds[type])
    throw new ExpressionError(`gives a value of type ${built.kind}, and the field is of type ${type}`)
  return built.tree
}

function messageOf(error: unknown): string {
  if (!(error instanceof ExpressionError)) return `fails: ${String(error)}`
  const { message, unknown } = error
  return unknown ? message + suggest(unknown.word, unknown.candidates) : message
}

export interface ReadComputed {
  /** Each after those that it reads; of those in which no mistake was found. */
  readonly computed: readonly ComputedField[]
  readonly mistakes: readonly ConfigIssue[]
}

/** `path` is that of the schema. */
export function readComputed(fields: Declared, hidden: ReadonlySet<string>, path: Path): ReadComputed {
  const mistakes: ConfigIssue[] = []
  const report = (name: string, message: string): void =>
    void mistakes.push({ path: [...path, name, 'computed'], message })
  const operands = operandsOf(fields)
  const expressions = new Map<string, Expression>()
  let count = 0
  for (const [name, field] of fields) {
    if (!field?.computed) continue
    count += 1
    try {
      expressions.set(name, build(field.computed, field.type, operands))
    } catch (error) {
      report(name, messageOf(error))
    }
  }
  if (count > computedFieldsMax) mistakes.push({ path, message: `has more than ${computedFieldsMax} computed fields` })
  const ordered = orderComputed(expressions)
  if (isCycle(ordered)) {
    report(ordered[0] as string, `is computed from itself: ${ordered.join(' → ')}`)
    return { computed: [], mistakes }
  }
  for (const one of ordered)
    for (const operand of one.operands)
      if (hidden.has(operand) && !hidden.has(one.name))
        report(one.name, `reads "${operand}", which is hidden: "${one.name}" must be hidden too, or it would reveal it`)
  return { computed: ordered, mistakes }
}

const isCycle = (ordered: readonly ComputedField[] | string[]): ordered is string[] => typeof ordered[0] === 'string'
