/**
 * Compiles a rule's result for a caller into an expression tree. A faulty rule (one that throws, returns a promise,
 * names an unknown field or compares with `undefined`) denies access and is reported through the log. It never allows
 * access, and its error never reaches the client.
 */
import { isJsonObject } from '../base/text/json.ts'
import { exprDepthMax } from '../limits/api.ts'
import { allOf, always, anyOf, type Expr, negate, never } from '../query/expr.ts'
import { findFieldType, parseRuleComparison } from '../query/filter.ts'
import type { FieldType, Table } from '../query/table.ts'
import type { FindTable } from '../query/to-sql.ts'
import type { Auth } from './caller.ts'
import type { Rule } from './definition.ts'
import { findFieldRef, findFilterNode } from './filter.ts'

export class RuleError extends Error {}

/** The rule compares with `undefined`: the caller lacks the value it compares with, so the rule denies. */
export class UndefinedValueError extends RuleError {}

/** Called once per failed evaluation. */
export type ReportRuleError = (problem: { table: Table; error: unknown }) => void

interface Scope {
  readonly table: Table
  readonly outer: Table | null
  readonly findTable: FindTable
  /** Collects the errors of all parts; without it the first error is thrown. */
  readonly collect?: (error: unknown) => void
}

/** What a faulty part of a filter becomes where errors are collected; otherwise the error is thrown. */
function faultyPart({ collect }: Scope, error: unknown): Expr {
  if (!collect) throw error
  collect(error)
  return never
}

function conditions(filter: Record<string, unknown>, scope: Scope): Expr {
  const names = Object.keys(filter)
  if (names.length === 0) throw new RuleError('A rule returned an empty filter; return true to allow every row')
  const parts: Expr[] = []
  for (const name of names) {
    try {
      parts.push(comparison(name, '==', filter[name], scope))
    } catch (error) {
      parts.push(faultyPart(scope, error))
    }
  }
  return allOf(parts)
}

function partsOf(filters: readonly unknown[], scope: Scope, depth: number): Expr[] {
  const parts: Expr[] = []
  for (const one of filters) {
    try {
      parts.push(toExpr(one, scope, depth))
    } catch (error) {
      parts.push(faultyPart(scope, error))
    }
  }
  return parts
}

function comparison(name: string, op: string, value: unknown, scope: Scope): Expr {
  if (value === undefined) {
    if (findFieldType({ table: scope.table, showsHidden: true }, name) === null) throw unknownField(scope.table, name)
    throw new UndefinedValueError(`The rule compares "${name}" with undefined`)
  }
  const outer = findFieldRef(value)
  if (outer === undefined) return parseRuleComparison(scope.table, name, op, value)
  const ours = scope.table.fields.get(name)?.type
  const theirs = scope.outer ? comparedType(scope.outer, outer) : undefined
  if (!ours || !theirs) throw new RuleError(`exists(…) can only compare declared fields: "${name}", field('${outer}')`)
  const text = (type: string): string => (type === 'text' ? 'string' : type)
  if (text(ours) !== text(theirs) || ours === 'json' || ours === 'geo')
    throw new RuleError(`"${name}" and field('${outer}') have different types`)
  return { kind: 'compare', field: name, op: op as '==', value: { outer } }
}

const unknownField = ({ name: table }: Table, name: string): RuleError =>
  new RuleError(`Unknown field ${JSON.stringify(name)} of ${table}`)

/** The type of a field that `exists` may refer to; undefined if it is not known. */
function comparedType(table: Table, name: string): FieldType | undefined {
  const declared = table.fields.get(name)
  if (declared) return declared.type
  // Undeclared fields with a prefix are file metadata, which is text.
  return table.undeclaredPrefix !== undefined && name.startsWith(table.undeclaredPrefix) ? 'string' : undefined
}

function toExpr(filter: unknown, scope: Scope, depth: number): Expr {
  if (depth > exprDepthMax) throw new RuleError('The rule is nested too deeply')
  if (typeof filter === 'boolean') return filter ? always : never
  if (!isJsonObject(filter)) throw new RuleError('A rule must return true, false or a filter')
  const node = findFilterNode(filter)
  if (!node) return conditions(filter, scope)
  switch (node.kind) {
    case 'and':
      return allOf(partsOf(node.of, scope, depth + 1))
    case 'or':
      return anyOf(partsOf(node.of, scope, depth + 1))
    case 'not':
      return negate(toExpr(node.of, scope, depth + 1))
    case 'where':
      return comparison(node.field, node.op, node.value, scope)
    case 'exists': {
      const table = scope.findTable(node.table, scope.outer ? scope.table : undefined)
      const where = toExpr(node.where, { ...scope, table, outer: scope.table }, depth + 1)
      return { kind: 'exists', table: table.name, where }
    }
  }
}

/** Compiles a rule's result into a tree over the rows of a table. Throws if it is not a valid filter over the table. */
export const filterExpr = (result: unknown, table: Table, findTable: FindTable): Expr =>
  toExpr(result, { table, outer: null, findTable }, 0)

/** All errors in a rule's result that do not depend on the caller; empty for a valid filter. */
export function findFilterErrors(result: unknown, table: Table, findTable: FindTable): readonly string[] {
  const errors: string[] = []
  const collect = (error: unknown): void => {
    if (!(error instanceof UndefinedValueError)) errors.push(error instanceof Error ? error.message : String(error))
  }
  const scope: Scope = { table, outer: null, findTable, collect }
  partsOf([result], scope, 0)
  return errors
}

const matchesNothing: Expr = { kind: 'in', field: 'id', values: [], negated: false }

/**
 * The rows of `table` that the rule allows for this user (null: an anonymous caller). Never throws: a faulty rule gives
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
    const expr = filterExpr(result, table, findTable)
    // A filter that matches no row (such as a member of no team) gives an empty list. Only an explicit `false` denies.
    return expr.kind === 'const' && !expr.value && result !== false ? matchesNothing : expr
  } catch (error) {
    report({ table, error })
    return never
  }
}

/**
 * Whether a rule reads properties of the caller other than the id, such as role, email or claims, which can change.
 * Determined by running the rule on a proxy.
 */
export function readsClaims(auth: Auth | null, run: (auth: Auth | null) => unknown): boolean {
  if (!auth) return false
  let reads = false
  const note = <T>(value: T): T => {
    reads = true
    return value
  }
  const recorder = new Proxy(auth, {
    get: (target, name) => (name === 'id' ? target.id : note(Reflect.get(target, name))),
    has: (target, name) => note(Reflect.has(target, name)),
    ownKeys: (target) => note(Reflect.ownKeys(target)),
    getOwnPropertyDescriptor: (target, name) => note(Reflect.getOwnPropertyDescriptor(target, name)),
  })
  try {
    run(recorder)
  } catch {
    // A rule that fails denies, regardless of what it read.
  }
  return reads
}
