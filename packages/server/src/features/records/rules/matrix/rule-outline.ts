/**
 * What a rule returns for a caller without credentials and for any user, as trees. A claim that the rule compares with
 * records is a mark in the tree; a claim that it only branches on is absent, as it is for most users.
 */
import type { AnonymousCaller, Caller } from '../../../../access/caller.ts'
import { valuesOf } from '../../../../query/assume.ts'
import { type Expr, isNever, never } from '../../../../query/expr.ts'
import { type ClaimValue, claimMark, createSampleCaller, type SampleCaller } from './sample-caller.ts'

export const anonymousCaller: AnonymousCaller = { kind: 'anonymous', auth: null, address: '' }

/** What a rule does for one caller. */
export interface RuleRun {
  /** Null where it cannot be known without a request: a promise. */
  readonly expr: Expr | null
  /** Why the rule failed. */
  readonly failure?: unknown
}

/** Evaluates one rule for a caller. */
export type EvaluateFor = (caller: Caller) => RuleRun

export interface RuleOutline {
  readonly anonymous: Expr | null
  /** Null where it depends on claims in a way that trees do not show, or is asynchronous. */
  readonly user: Expr | null
  /** The properties of the caller that the rule reads beside the id. */
  readonly reads: readonly string[]
  /** Why the rule failed for one of the two. */
  readonly failure: unknown
}

/** Values of claims that a rule may expect: a text, a list, or a number. */
const forms: readonly ((name: string) => unknown)[] = [claimMark, (name) => [claimMark(name)]]

const noClaims: ClaimValue = () => undefined

interface Tried extends RuleRun {
  readonly sample: SampleCaller
}

function attempt(evaluate: EvaluateFor, claimOf: ClaimValue): Tried {
  const sample = createSampleCaller(claimOf)
  return { ...evaluate(sample.caller), sample }
}

/** The claims that the tree compares with records. */
const comparedClaims = ({ expr, sample }: Tried): ReadonlySet<string> => {
  const values = expr ? valuesOf(expr) : new Set<string>()
  return new Set([...sample.claims].filter((name) => values.has(claimMark(name))))
}

/** The rule for any user: with the claims that it compares, and without those that it branches on. */
function outlineUser(evaluate: EvaluateFor): Tried {
  const plain = attempt(evaluate, noClaims)
  if (plain.sample.claims.size === 0) return plain
  for (const form of forms) {
    const claimed = attempt(evaluate, form)
    const compared = comparedClaims(claimed)
    if (claimed.failure !== undefined || compared.size === 0) continue
    const precise = attempt(evaluate, (name) => (compared.has(name) ? form(name) : undefined))
    if (precise.failure === undefined) return precise
  }
  // Without the claims it fails, and with marks as well: it needs values that are not known here.
  return plain.failure === undefined ? plain : { ...plain, expr: null }
}

export function outlineRule(evaluate: EvaluateFor): RuleOutline {
  const anonymous = evaluate(anonymousCaller)
  const user = outlineUser(evaluate)
  const failure = anonymous.failure ?? (user.expr === null ? undefined : user.failure)
  return { anonymous: anonymous.expr, user: user.expr, reads: [...user.sample.reads].sort(), failure }
}

/** A list of no values, which a rule returns for a user without memberships, has no rows. */
export const isEmptyList = (expr: Expr): boolean => expr.kind === 'in' && !expr.negated && expr.values.length === 0

export const simplified = (expr: Expr): Expr => (isEmptyList(expr) || isNever(expr) ? never : expr)
