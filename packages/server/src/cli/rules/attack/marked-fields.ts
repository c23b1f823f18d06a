/** What rules compare with the caller: the fields of records that say whose they are. Reads the trees of the matrix. */
import { isClaimMark, isIdentityMark } from '../../../features/records/rules/matrix/sample-caller.ts'
import type { Expr } from '../../../query/expr.ts'

export interface MarkedField {
  readonly field: string
  readonly mark: string
  /** Whether the field is a list that contains it. */
  readonly isList: boolean
}

export interface Marks {
  /** Fields of the records themselves, outside of `exists`. */
  readonly fields: readonly MarkedField[]
  /** Claims by their marks: whether the claim is a list of values. */
  readonly claims: ReadonlyMap<string, boolean>
}

const isMark = (value: unknown): value is string =>
  typeof value === 'string' && (isIdentityMark(value) || isClaimMark(value))

/** Collects the marks of trees. */
export function marksIn(trees: readonly (Expr | null)[]): Marks {
  const fields: MarkedField[] = []
  const claims = new Map<string, boolean>()
  const note = (
    field: string,
    value: unknown,
    at: { isList: boolean; isInside: boolean; isListClaim: boolean },
  ): void => {
    if (!isMark(value)) return
    if (!at.isInside) fields.push({ field, mark: value, isList: at.isList })
    if (isClaimMark(value)) claims.set(value, at.isListClaim || claims.get(value) === true)
  }
  const visit = (expr: Expr, isInside: boolean): void => {
    switch (expr.kind) {
      case 'and':
      case 'or':
        for (const part of expr.of) visit(part, isInside)
        return
      case 'not':
        visit(expr.of, isInside)
        return
      case 'exists':
        visit(expr.where, true)
        return
      case 'compare':
        note(expr.field, expr.value, { isList: false, isInside, isListClaim: false })
        return
      case 'contains':
        note(expr.field, expr.value, { isList: true, isInside, isListClaim: false })
        return
      case 'in':
        for (const value of expr.values) note(expr.field, value, { isList: false, isInside, isListClaim: true })
    }
  }
  for (const tree of trees) if (tree) visit(tree, false)
  return { fields, claims }
}
