/**
 * A rule and a caller make a tree. Whatever is wrong with a rule (it throws, gives a promise, names an unknown field,
 * compares with `undefined`) denies and is reported to its author through the log; it never allows and never reaches
 * the caller.
 */
import { exprDepthMax } from '../limits.ts'
import { allOf, always, anyOf, type Expr, negate, never } from '../query/expr.ts'
import { parseRuleComparison } from '../query/filter.ts'
import type { Table } from '../query/table.ts'
import type { FindTable } from '../query/to-sql.ts'
import type { Auth } from './caller.ts'
import type { Rule } from './definition.ts'
import { findFieldRef, findFilterNode } from './filter.ts'

export class RuleError extends Error {}

/** Reported once per evaluation that failed. */
export type ReportRuleError = (problem: { table: Table; error: unknown }) => void

interface Scope {
  readonly table: Table
  readonly outer: Table | null
  readonly findTable: FindTable
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function conditions(filter: Record<string, unknown>, scope: Scope): Expr {
  const entries = Object.entries(filter)
  if (entries.length === 0) throw new RuleError('A rule gave an empty filter; write true to allow every row')
  return allOf(entries.map(([name, value]) => comparison(name, '==', value, scope)))
}

function comparison(name: string, op: string, value: unknown, scope: Scope): Expr {
  if (value === undefined) throw new RuleError(`The rule compares "${name}" with undefined`)
  const outer = findFieldRef(value)
  if (outer === undefined) return parseRuleComparison(scope.table, name, op, value)
  const ours = scope.table.fields.get(name)
  const theirs = scope.outer?.fields.get(outer)
  if (!ours || !theirs) throw new RuleError(`exists(…) can only compare declared fields: "${name}", field('${outer}')`)
  const text = (type: string): string => (type === 'text' ? 'string' : type)
  if (text(ours.type) !== text(theirs.type) || ours.type === 'json')
    throw new RuleError(`"${name}" and field('${outer}') have different types`)
  return { kind: 'compare', field: name, op: op as '==', value: { outer } }
}

function toExpr(filter: unknown, scope: Scope, depth: number): Expr {
  if (depth > exprDepthMax) throw new RuleError('The rule is nested too deeply')
  if (typeof filter === 'boolean') return filter ? always : never
  if (!isRecord(filter)) throw new RuleError('A rule must give true, false or a filter')
  const node = findFilterNode(filter)
  if (!node) return conditions(filter, scope)
  switch (node.kind) {
    case 'and':
      return allOf(node.of.map((part) => toExpr(part, scope, depth + 1)))
    case 'or':
      return anyOf(node.of.map((part) => toExpr(part, scope, depth + 1)))
    case 'not':
      return negate(toExpr(node.of, scope, depth + 1))
    case 'where':
      return comparison(node.field, node.op, node.value, scope)
    case 'exists': {
      const table = scope.findTable(node.table)
      const where = toExpr(node.where, { table, outer: scope.table, findTable: scope.findTable }, depth + 1)
      return { kind: 'exists', table: table.name, where }
    }
  }
}

const matchesNothing: Expr = { kind: 'in', field: 'id', values: [], negated: false }

/**
 * The rows of `table` that the rule allows this user (null: an anonymous caller). Never throws: a broken rule is
 * `never`.
 */
export function evaluateRule(
  rule: Rule,
  auth: Auth | null,
  table: Table,
  findTable: FindTable,
  report: ReportRuleError,
): Expr {
  if (typeof rule === 'boolean') return rule ? always : never
  try {
    const result: unknown = rule(auth)
    if (!result) return never
    const expr = toExpr(result, { table, outer: null, findTable }, 0)
    // A filter that happens to match nothing (a member of no team) shows an empty table; only the rule itself says no.
    return expr.kind === 'const' && !expr.value && result !== false ? matchesNothing : expr
  } catch (error) {
    report({ table, error })
    return never
  }
}
