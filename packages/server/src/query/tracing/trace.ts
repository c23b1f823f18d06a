/**
 * Evaluates an expression tree clause by clause for one row, to show why a rule allows or denies. Each clause is
 * evaluated by `partiallyEvaluate`, as everywhere; what the row does not decide, the caller's database does.
 */
import { clauseValueCharsMax, ruleClausesMax } from '../../limits/api.ts'
import type { Expr } from '../expr.ts'
import { cut, exprText } from '../expr-text.ts'
import { fieldOf, partiallyEvaluate, type Row } from '../matches.ts'

/** A node of the tree. */
export interface Clause {
  readonly text: string
  /** Where it is, such as `read.and[1].not`. */
  readonly path: string
  /** Null where the clause has nothing to compare: an empty field, which counts as false, or no row. */
  readonly result: boolean | null
  /** The values of the row that the clause itself reads, by field. */
  readonly values: Readonly<Record<string, unknown>>
}

export type ExistsExpr = Extract<Expr, { kind: 'exists' }>

export interface TraceOptions {
  /** The path of the root, such as `read`. */
  readonly path: string
  /** Null without a row: only constants are decided then. */
  readonly row: Row | null
  /** Whether an `exists` is true whose references to the row are replaced with values. */
  readonly isTrue: (exists: ExistsExpr) => boolean | Promise<boolean>
  /** Whether the value of a field of the row must not be shown. */
  readonly isMasked: (field: string) => boolean
  /** Whether what a clause says of a field of the row must not be shown either. */
  readonly isSecret: (field: string) => boolean
}

export interface Trace {
  /** The root first, each node before its parts; at most `ruleClausesMax`. */
  readonly clauses: readonly Clause[]
  /** The result of the tree; null without a row that decides it. */
  readonly result: boolean | null
}

/** Stands for a value that must not be shown. */
export const masked = '[hidden]'

/** The fields of the row that a node reads itself. */
function fieldsRead(expr: Expr): readonly string[] {
  switch (expr.kind) {
    case 'const':
    case 'and':
    case 'or':
    case 'not':
      return []
    case 'exists':
      return [...outerFields(expr.where)]
    default:
      return [expr.field]
  }
}

/** The fields of the enclosing row that the conditions of an `exists` name. */
function outerFields(where: Expr): ReadonlySet<string> {
  const names = new Set<string>()
  const visit = (one: Expr): void => {
    if (one.kind === 'and' || one.kind === 'or') one.of.forEach(visit)
    else if (one.kind === 'not') visit(one.of)
    else if (one.kind === 'compare' && typeof one.value === 'object') names.add(one.value.outer)
  }
  visit(where)
  return names
}

/** A value as a clause shows it: short texts and scalars as they are, anything longer as the start of its JSON. */
export function preview(value: unknown): unknown {
  if (value === undefined) return null
  if (typeof value === 'string') return cut(value, clauseValueCharsMax)
  if (typeof value !== 'object' || value === null) return value
  const text = JSON.stringify(value)
  return text.length <= clauseValueCharsMax ? value : cut(text, clauseValueCharsMax)
}

const isEmpty = (value: unknown): boolean => value === null || value === undefined

/** Results of the parts of `and` and `or`; unknown ones occur only without a row. */
function combine(kind: 'and' | 'or', parts: readonly (boolean | null)[]): boolean | null {
  const decisive = kind === 'or'
  if (parts.includes(decisive)) return decisive
  return parts.includes(null) ? null : !decisive
}

const pathUnder = (path: string, { kind }: Expr, at: number): string =>
  kind === 'not' ? `${path}.not` : `${path}.${kind}[${at}]`

const partsOf = (expr: Expr): readonly Expr[] =>
  expr.kind === 'and' || expr.kind === 'or' ? expr.of : expr.kind === 'not' ? [expr.of] : []

export async function trace(expr: Expr, options: TraceOptions): Promise<Trace> {
  const { row, isTrue, isMasked, isSecret } = options
  const clauses: Clause[] = []

  const valuesOf = (fields: readonly string[]): Record<string, unknown> =>
    row === null
      ? {}
      : Object.fromEntries(
          fields.map((field) => [field, isMasked(field) ? masked : preview(fieldOf(row, field))] as const),
        )

  /** The result of a node without parts, as it counts in the tree. */
  async function leaf(one: Expr): Promise<boolean | null> {
    if (one.kind === 'const') return one.value
    if (row === null) return null
    const residual = partiallyEvaluate(one, row)
    if (residual.kind === 'const') return residual.value
    return isTrue(residual as ExistsExpr)
  }

  /** What the clause shows: null for a comparison with an empty field, and for what must not be shown. */
  function shown(one: Expr, fields: readonly string[], result: boolean | null): boolean | null {
    if (row === null || fields.length === 0) return result
    if (fields.some(isSecret)) return null
    return result === false && one.kind !== 'null' && fields.some((field) => isEmpty(fieldOf(row, field)))
      ? null
      : result
  }

  async function visit(one: Expr, path: string): Promise<boolean | null> {
    const at = clauses.length
    const fields = fieldsRead(one)
    const clause = { text: exprText(one), path: cut(path, clauseValueCharsMax), values: valuesOf(fields) }
    const isListed = at < ruleClausesMax
    if (isListed) clauses.push({ ...clause, result: null })
    const parts = partsOf(one)
    const results: (boolean | null)[] = []
    for (const [index, part] of parts.entries()) results.push(await visit(part, pathUnder(path, one, index)))
    let result: boolean | null
    if (one.kind === 'and' || one.kind === 'or') result = combine(one.kind, results)
    else if (one.kind === 'not') result = results[0] === null ? null : !results[0]
    else result = await leaf(one)
    if (isListed) clauses[at] = { ...clause, result: shown(one, fields, result) }
    return result
  }

  const result = await visit(expr, options.path)
  return { clauses, result }
}
