/**
 * Whether a rule's tree is true of one thing that is no row of a table it asks: a file, a room, an instance. What the
 * thing itself decides is decided here; each `exists` is asked of the database that has its table.
 */
import type { DatabaseAddress, Sql } from '../engines/sql/sql.ts'
import { sql } from '../engines/sql/sql-text.ts'
import type { Expr } from '../query/expr.ts'
import { type Row, settle } from '../query/matches.ts'
import { idField, type Table } from '../query/table.ts'
import { createSqlBackEnd, type FindTable, type SqlBackEnd } from '../query/to-sql.ts'
import type { NamespaceDefinition } from './definition.ts'

type Namespaces = ReadonlyMap<string, NamespaceDefinition>

/** The namespace whose tables the rules of buckets, rooms and instances may ask. */
const sharedNamespace = 'shared'

/** A thing with nothing but an id, as its rules see it. */
export const thingTable = (name: string): Table =>
  Object.freeze({
    namespace: '_things',
    name,
    perInstance: false,
    schemaless: false,
    fields: new Map([['id', idField]]),
    hidden: new Set<string>(),
    indexes: Object.freeze([]),
    search: Object.freeze([]),
  })

/** Tables by name for such rules: those of `own` (an instance's namespace) before those of `shared`. */
export const tablesOf =
  (namespaces: Namespaces, own: string | null): FindTable =>
  (name, within) => {
    const places = within ? [within.namespace] : [...(own === null ? [] : [own]), sharedNamespace]
    for (const place of places) {
      const found = namespaces.get(place)?.tables.get(name)
      if (found) return found.table
    }
    throw new Error(`There is no table "${name}" in ${places.map((place) => `"${place}"`).join(' or ')}`)
  }

export interface Judge {
  /** For filters of rules over an instance of `own`, or over a file or a room where it is null. */
  tablesOf(own: string | null): FindTable
  /**
   * Whether the tree is true of the thing. `instance` has tables of its own that `exists` may ask, before those of
   * `shared`. A promise only where a database must be asked; it rejects with `EngineError`.
   */
  holds(expr: Expr, thing: Row, instance?: DatabaseAddress | null): boolean | Promise<boolean>
}

export function createJudge(deps: { sql: Pick<Sql, 'database'>; namespaces: () => Namespaces }): Judge {
  /** A reloaded configuration brings new definitions, and old ones are forgotten with it. */
  const backEnds = new WeakMap<NamespaceDefinition, SqlBackEnd>()

  async function ask(exists: Expr & { kind: 'exists' }, instance: DatabaseAddress | null): Promise<boolean> {
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

  async function decide(expr: Expr, instance: DatabaseAddress | null): Promise<boolean> {
    switch (expr.kind) {
      case 'and':
        for (const part of expr.of) if (!(await decide(part, instance))) return false
        return true
      case 'or':
        for (const part of expr.of) if (await decide(part, instance)) return true
        return false
      case 'not':
        return !(await decide(expr.of, instance))
      case 'exists':
        return ask(expr, instance)
      default:
        return expr.kind === 'const' && expr.value
    }
  }

  return {
    tablesOf: (own) => tablesOf(deps.namespaces(), own),
    holds(expr, thing, instance = null) {
      const settled = settle(expr, thing)
      return settled.kind === 'const' ? settled.value : decide(settled, instance)
    },
  }
}
