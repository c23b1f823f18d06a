/**
 * Evaluates a rule's expression tree for a subject that is not a row of a queried table: a file, a room or an instance.
 * Comparisons with the subject are evaluated in memory; each `exists` is a query to the database that has its table.
 */
import type { DatabaseAddress, Sql } from '../engines/sql/sql.ts'
import { sql } from '../engines/sql/sql-text.ts'
import { type Expr, isAlways } from '../query/expr.ts'
import { partiallyEvaluate, type Row } from '../query/matches.ts'
import { idField, type Table } from '../query/table.ts'
import { createSqlBackEnd, type FindTable, type SqlBackEnd } from '../query/to-sql.ts'
import type { NamespaceDefinition } from './definition.ts'

type Namespaces = ReadonlyMap<string, NamespaceDefinition>

/** The namespace whose tables the rules of buckets, rooms and instances may query. */
const sharedNamespace = 'shared'

/** The table definition for subjects whose only field is `id`. */
export const subjectTable = (name: string): Table =>
  Object.freeze({
    namespace: '_things',
    name,
    perInstance: false,
    schemaless: false,
    fields: new Map([['id', idField]]),
    hidden: new Set<string>(),
    indexes: Object.freeze([]),
    search: Object.freeze([]),
    computed: Object.freeze([]),
  })

/** Finds tables by name for such rules: first in `own` (an instance's namespace), then in `shared`. */
export const tablesOf =
  (namespaces: Namespaces, own: string | null): FindTable =>
  (name, within) => {
    const searched = within ? [within.namespace] : [...(own === null ? [] : [own]), sharedNamespace]
    for (const namespace of searched) {
      const found = namespaces.get(namespace)?.tables.get(name)
      if (found) return found.table
    }
    throw new Error(`There is no table "${name}" in ${searched.map((namespace) => `"${namespace}"`).join(' or ')}`)
  }

export interface RuleEvaluator {
  /** Tables for rules over an instance of `own`; over a file or a room if null. */
  tablesOf(own: string | null): FindTable
  /**
   * Whether the tree is true of the subject. `exists` queries the tables of `instance`, if given, before those of
   * `shared`. Returns a promise only if a database has to be queried; it rejects with `EngineError`.
   */
  isTrue(expr: Expr, subject: Row, instance?: DatabaseAddress | null): boolean | Promise<boolean>
}

export function createRuleEvaluator(deps: { sql: Pick<Sql, 'database'>; namespaces: () => Namespaces }): RuleEvaluator {
  /** Weak, since a reload replaces the definitions. */
  const backEnds = new WeakMap<NamespaceDefinition, SqlBackEnd>()

  async function queryExists(exists: Expr & { kind: 'exists' }, instance: DatabaseAddress | null): Promise<boolean> {
    const table = tablesOf(deps.namespaces(), instance?.namespace ?? null)(exists.table)
    const isOwn = instance !== null && table.namespace === instance.namespace
    const database = deps.sql.database(isOwn ? instance : { namespace: sharedNamespace, instanceId: null })
    const definition = deps.namespaces().get(table.namespace) as NamespaceDefinition
    let backEnd = backEnds.get(definition)
    if (!backEnd) {
      backEnd = createSqlBackEnd(database.dialect, (name) => tablesOf(deps.namespaces(), null)(name, table))
      backEnds.set(definition, backEnd)
    }
    const found = await database.all(sql`SELECT 1 AS yes WHERE ${backEnd.condition(exists, table)}`)
    return found.length > 0
  }

  async function evaluate(expr: Expr, instance: DatabaseAddress | null): Promise<boolean> {
    switch (expr.kind) {
      case 'and':
        for (const part of expr.of) if (!(await evaluate(part, instance))) return false
        return true
      case 'or':
        for (const part of expr.of) if (await evaluate(part, instance)) return true
        return false
      case 'not':
        return !(await evaluate(expr.of, instance))
      case 'exists':
        return queryExists(expr, instance)
      default:
        return isAlways(expr)
    }
  }

  return {
    tablesOf: (own) => tablesOf(deps.namespaces(), own),
    isTrue(expr, subject, instance = null) {
      const residual = partiallyEvaluate(expr, subject)
      return residual.kind === 'const' ? residual.value : evaluate(residual, instance)
    },
  }
}
