/** The cells of the matrix: what kinds of callers may do, computed from the outline of a rule. */
import { type Assumption, assume } from '../../../../query/assume.ts'
import type { Expr } from '../../../../query/expr.ts'
import { exprText } from '../../../../query/expr-text.ts'
import { type RuleOutline, simplified } from './rule-outline.ts'
import { isClaimMark, isIdentityMark, withoutMarks } from './sample-caller.ts'

/**
 * `user`: any signed-in user. `owner`: every field that a rule compares with the caller's id has it. `otherUser`: no
 * record has the caller's id. `otherTenant`: nor any of its claims, and the instance is not one that admits it.
 */
export const callerKinds = ['anonymous', 'user', 'owner', 'otherUser', 'otherTenant'] as const
export type CallerKind = (typeof callerKinds)[number]

export interface Cell {
  readonly access: 'always' | 'never' | 'depends'
  /** What it depends on; null unless it does. */
  readonly condition: string | null
}

/** What is assumed of records for each kind of user. */
const assumptions: Readonly<Record<Exclude<CallerKind, 'anonymous'>, Assumption>> = {
  user: () => null,
  owner: (value, isInside) => (!isInside && isIdentityMark(value) ? true : null),
  otherUser: (value) => (isIdentityMark(value) ? false : null),
  otherTenant: (value) => (isIdentityMark(value) || isClaimMark(value) ? false : null),
}

/** One tree of several that must all be true, such as the rule before an update and the one after it. */
export interface CellPart {
  /** In the text of a condition of several parts. */
  readonly name: string
  readonly outline: RuleOutline
}

const unknownText = ({ reads }: RuleOutline): string =>
  reads.length === 0 ? 'an asynchronous rule' : `the caller's ${reads.join(', ')}`

function exprFor({ outline }: CellPart, kind: CallerKind): Expr | null {
  const expr = kind === 'anonymous' ? outline.anonymous : outline.user
  return expr && simplified(kind === 'anonymous' ? expr : assume(expr, assumptions[kind]))
}

/** What a kind of caller may do where all parts have to be true. */
export function cellOf(parts: readonly CellPart[], kind: CallerKind): Cell {
  const conditions: { readonly name: string; readonly text: string }[] = []
  for (const part of parts) {
    const expr = exprFor(part, kind)
    if (expr?.kind === 'const' && !expr.value) return { access: 'never', condition: null }
    if (expr?.kind === 'const') continue
    conditions.push({ name: part.name, text: expr ? withoutMarks(exprText(expr)) : unknownText(part.outline) })
  }
  if (conditions.length === 0) return { access: 'always', condition: null }
  const texts = new Set(conditions.map(({ text }) => text))
  const condition =
    texts.size === 1 ? [...texts].join() : conditions.map(({ name, text }) => `${name}: ${text}`).join('; ')
  return { access: 'depends', condition }
}

/** What a caller may do who needs both. */
export function bothCells(first: Cell, second: Cell): Cell {
  if (first.access === 'always') return second
  if (second.access === 'always' || first.access === 'never') return first
  if (second.access === 'never') return second
  return { access: 'depends', condition: `${first.condition}; ${second.condition}` }
}
