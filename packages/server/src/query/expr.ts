/**
 * The expression tree that selects records. API filters and access rules compile to it; its back ends are SQL for each
 * engine and `matches` in memory. All have the same semantics:
 *
 * - A comparison with a null field, or between different types, is false, and so is the opposite comparison. `not` is
 *   two-valued: the negation of a comparison that is false because of a null is true.
 * - `== null` is "is null", `!= null` is "is not null".
 * - Text is ordered by code point; `contains` is a case-sensitive substring.
 */

import type { Area } from './geo/area.ts'

export type Scalar = string | number | boolean

export type CompareOp = '==' | '!=' | '>' | '>=' | '<' | '<='

/** Inside `exists`: a field of the outer row. */
export interface OuterField {
  readonly outer: string
}

export type Expr =
  | { readonly kind: 'const'; readonly value: boolean }
  | { readonly kind: 'null'; readonly field: string; readonly negated: boolean }
  | { readonly kind: 'compare'; readonly field: string; readonly op: CompareOp; readonly value: Scalar | OuterField }
  | { readonly kind: 'contains'; readonly field: string; readonly value: Scalar }
  /** The place in a geo field is in an area. */
  | { readonly kind: 'geo'; readonly field: string; readonly area: Area }
  | { readonly kind: 'in'; readonly field: string; readonly values: readonly Scalar[]; readonly negated: boolean }
  | { readonly kind: 'and'; readonly of: readonly Expr[] }
  | { readonly kind: 'or'; readonly of: readonly Expr[] }
  | { readonly kind: 'not'; readonly of: Expr }
  /** Some row of `table` (same namespace) satisfies `where`, whose `OuterField`s refer to the outer row. */
  | { readonly kind: 'exists'; readonly table: string; readonly where: Expr }

export const always: Expr = Object.freeze({ kind: 'const', value: true })
export const never: Expr = Object.freeze({ kind: 'const', value: false })

/** Whether a tree is the constant true. */
export const isAlways = (expr: Expr): boolean => expr.kind === 'const' && expr.value

/** Whether a tree is the constant false. */
export const isNever = (expr: Expr): boolean => expr.kind === 'const' && !expr.value

/** Whether two comparisons with constants are the same. */
function isSameComparison(one: Expr, other: Expr): boolean {
  if (one.kind === 'null') return other.kind === 'null' && one.field === other.field && one.negated === other.negated
  if (one.kind !== 'compare' || other.kind !== 'compare' || typeof one.value === 'object') return false
  return one.field === other.field && one.op === other.op && one.value === other.value
}

/** Whether one of the parts requires an alternative. */
function isImplied(alternatives: readonly Expr[], parts: readonly Expr[]): boolean {
  for (const one of alternatives) for (const part of parts) if (isSameComparison(one, part)) return true
  return false
}

/** Without each `a OR b` beside an `a`: a rule "published or one's own" beside a filter for what is published. */
function withoutImplied(parts: readonly Expr[]): readonly Expr[] {
  let kept: Expr[] | null = null
  for (let at = 0; at < parts.length; at++) {
    const part = parts[at] as Expr
    if (part.kind === 'or' && isImplied(part.of, parts)) kept ??= parts.slice(0, at)
    else kept?.push(part)
  }
  return kept ?? parts
}

/**
 * AND with constant folding, so that `and(always, x)` is `x` and a denying rule stays recognizable as `never`. Leaves
 * out alternatives of which the other parts require one.
 */
export function allOf(parts: readonly Expr[]): Expr {
  const given: Expr[] = []
  for (const part of parts) {
    if (part.kind === 'const') {
      if (!part.value) return never
    } else if (part.kind === 'and') given.push(...part.of)
    else given.push(part)
  }
  const kept = withoutImplied(given)
  if (kept.length === 0) return always
  return kept.length === 1 ? (kept[0] as Expr) : { kind: 'and', of: kept }
}

/** OR with constant folding; `never` for no parts. */
export function anyOf(parts: readonly Expr[]): Expr {
  const kept: Expr[] = []
  for (const part of parts) {
    if (part.kind === 'const') {
      if (part.value) return always
    } else if (part.kind === 'or') kept.push(...part.of)
    else kept.push(part)
  }
  if (kept.length === 0) return never
  return kept.length === 1 ? (kept[0] as Expr) : { kind: 'or', of: kept }
}

/** Two-valued negation: true exactly when `of` is not true. */
export function negate(of: Expr): Expr {
  if (of.kind === 'const') return of.value ? never : always
  if (of.kind === 'not') return of.of
  return { kind: 'not', of }
}

/** The fields of the row that a tree reads, including those its `exists` refer to. */
export function fieldsOf(expr: Expr): ReadonlySet<string> {
  const names = new Set<string>()
  const visit = (one: Expr, isInside: boolean): void => {
    if (one.kind === 'and' || one.kind === 'or') for (const part of one.of) visit(part, isInside)
    else if (one.kind === 'not') visit(one.of, isInside)
    // An `exists` inside another refers to the row of that one, not to the outermost row.
    else if (one.kind === 'exists') {
      if (!isInside) visit(one.where, true)
    } else if (isInside) {
      if (one.kind === 'compare' && typeof one.value === 'object') names.add(one.value.outer)
    } else if (one.kind !== 'const') names.add(one.field)
  }
  visit(expr, false)
  return names
}

/**
 * The tree with each `exists` replaced by the constant that permits more rows: true for every row for which the tree
 * can be true. For engines that cannot query the tables.
 */
export function assumeExists(expr: Expr, assumed = true): Expr {
  switch (expr.kind) {
    case 'and':
      return allOf(expr.of.map((part) => assumeExists(part, assumed)))
    case 'or':
      return anyOf(expr.of.map((part) => assumeExists(part, assumed)))
    case 'not':
      return negate(assumeExists(expr.of, !assumed))
    case 'exists':
      return assumed ? always : never
    default:
      return expr
  }
}

/** Whether an operator is true for the order of two values: negative, zero or positive. */
export function isOrdered(op: CompareOp, ordering: number): boolean {
  switch (op) {
    case '==':
      return ordering === 0
    case '!=':
      return ordering !== 0
    case '>':
      return ordering > 0
    case '>=':
      return ordering >= 0
    case '<':
      return ordering < 0
    case '<=':
      return ordering <= 0
  }
}
