/**
 * A rule and a caller make a tree. Whatever is wrong with a rule (it throws, gives a promise, names an unknown field,
 * compares with `undefined`) denies and is reported to its author through the log; it never allows and never reaches
 * the caller.
 */
import { exprDepthMax } from '../limits/api.ts'
import { allOf, always, anyOf, type Expr, negate, never } from '../query/expr.ts'
import { findFieldType, parseRuleComparison } from '../query/filter.ts'
import type { FieldType, Table } from '../query/table.ts'
import type { FindTable } from '../query/to-sql.ts'
import type { Auth } from './caller.ts'
import type { Rule } from './definition.ts'
import { findFieldRef, findFilterNode } from './filter.ts'

export class RuleError extends Error {}

/** A value of the rule is undefined: the caller lacks what the rule compares with, so the rule denies. */
export class UndefinedValueError extends RuleError {}

/** Reported once per evaluation that failed. */
export type ReportRuleError = (problem: { table: Table; error: unknown }) => void

interface Scope {
  readonly table: Table
  readonly outer: Table | null
  readonly findTable: FindTable
  /** Collects what is wrong with each part; without it the first mistake is thrown. */
  readonly collect?: (error: unknown) => void
}

/** A part of a filter; one that is wrong is `never` where mistakes are collected. */
function part({ collect }: Scope, read: () => Expr): Expr {
  if (!collect) return read()
  try {
    return read()
  } catch (error) {
    collect(error)
    return never
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function conditions(filter: Record<string, unknown>, scope: Scope): Expr {
  const entries = Object.entries(filter)
  if (entries.length === 0) throw new RuleError('A rule gave an empty filter; write true to allow every row')
  return allOf(entries.map(([name, value]) => part(scope, () => comparison(name, '==', value, scope))))
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
  if (text(ours) !== text(theirs) || ours === 'json')
    throw new RuleError(`"${name}" and field('${outer}') have different types`)
  return { kind: 'compare', field: name, op: op as '==', value: { outer } }
}

const unknownField = ({ name: table }: Table, name: string): RuleError =>
  new RuleError(`Unknown field ${JSON.stringify(name)} of ${table}`)

/** The type of a field that `exists` may refer to; undefined where it has none that is known. */
function comparedType(table: Table, name: string): FieldType | undefined {
  const declared = table.fields.get(name)
  if (declared) return declared.type
  // Undeclared fields under a prefix are the metadata of files, which is text.
  return table.undeclaredPrefix !== undefined && name.startsWith(table.undeclaredPrefix) ? 'string' : undefined
}

function toExpr(filter: unknown, scope: Scope, depth: number): Expr {
  if (depth > exprDepthMax) throw new RuleError('The rule is nested too deeply')
  if (typeof filter === 'boolean') return filter ? always : never
  if (!isRecord(filter)) throw new RuleError('A rule must give true, false or a filter')
  const node = findFilterNode(filter)
  if (!node) return conditions(filter, scope)
  switch (node.kind) {
    case 'and':
      return allOf(node.of.map((one) => part(scope, () => toExpr(one, scope, depth + 1))))
    case 'or':
      return anyOf(node.of.map((one) => part(scope, () => toExpr(one, scope, depth + 1))))
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

/** What a rule gave, as a tree over the rows of a table. Throws for what is no filter over it. */
export const filterExpr = (given: unknown, table: Table, findTable: FindTable): Expr =>
  toExpr(given, { table, outer: null, findTable }, 0)

/** Everything that is wrong with what a rule gave, for any caller; nothing for a filter that can be used. */
export function findFilterMistakes(given: unknown, table: Table, findTable: FindTable): readonly string[] {
  const mistakes: string[] = []
  const collect = (error: unknown): void => {
    if (!(error instanceof UndefinedValueError)) mistakes.push(error instanceof Error ? error.message : String(error))
  }
  const scope: Scope = { table, outer: null, findTable, collect }
  part(scope, () => toExpr(given, scope, 0))
  return mistakes
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
    const expr = filterExpr(result, table, findTable)
    // A filter that happens to match nothing (a member of no team) shows an empty table; only the rule itself says no.
    return expr.kind === 'const' && !expr.value && result !== false ? matchesNothing : expr
  } catch (error) {
    report({ table, error })
    return never
  }
}

/**
 * Whether what a rule allows a caller depends on more than the caller's id: on role, e-mail or claims, which may
 * change. Found by running the rule.
 */
export function readsClaims(auth: Auth | null, run: (auth: Auth | null) => unknown): boolean {
  if (!auth) return false
  let reads = false
  const note = <T>(value: T): T => {
    reads = true
    return value
  }
  const watched = new Proxy(auth, {
    get: (target, name) => (name === 'id' ? target.id : note(Reflect.get(target, name))),
    has: (target, name) => note(Reflect.has(target, name)),
    ownKeys: (target) => note(Reflect.ownKeys(target)),
    getOwnPropertyDescriptor: (target, name) => note(Reflect.getOwnPropertyDescriptor(target, name)),
  })
  try {
    run(watched)
  } catch {
    // A rule that fails denies, whatever it read.
  }
  return reads
}
