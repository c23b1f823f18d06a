/**
 * The public description of tables: fields, search and indexes, without access rules and hidden fields. `endpoints`
 * decides who may read it.
 */
import type { NamespaceDefinition } from '../../access/definition.ts'
import type { Field, FieldType, Index, Table } from '../../query/table.ts'

export interface FieldDescription {
  readonly type: FieldType
  readonly required: boolean
  readonly unique: boolean
  readonly default?: unknown
  readonly min?: number
  readonly max?: number
  readonly pattern?: string
  readonly enum?: readonly (string | number)[]
  readonly references?: string
}

export interface TableDescription {
  readonly namespace: string
  readonly fields: Readonly<Record<string, FieldDescription>>
  readonly search: readonly string[]
  readonly indexes: readonly Index[]
}

export interface SchemaDescription {
  /** Keyed by table name, or by `namespace.name` if several namespaces have the table. */
  readonly tables: Readonly<Record<string, TableDescription>>
}

/** Describes every declared table, in order of declaration. */
export function describeSchema(namespaces: ReadonlyMap<string, NamespaceDefinition>): SchemaDescription {
  const tables = [...namespaces.values()].flatMap(({ tables }) => [...tables.values()].map(({ table }) => table))
  const uses = new Map<string, number>()
  for (const { name } of tables) uses.set(name, (uses.get(name) ?? 0) + 1)
  const keyOf = ({ namespace, name }: Table): string => (uses.get(name) === 1 ? name : `${namespace}.${name}`)
  return { tables: Object.fromEntries(tables.map((table) => [keyOf(table), describeTable(table)])) }
}

function describeTable({ namespace, fields, hidden, search, indexes }: Table): TableDescription {
  const isShown = (name: string): boolean => !hidden.has(name)
  return {
    namespace,
    fields: Object.fromEntries(
      [...fields.values()].filter(({ name }) => isShown(name)).map((field) => [field.name, describeField(field)]),
    ),
    search: search.filter(isShown),
    // An index over a hidden field would name it.
    indexes: indexes.filter((index) => index.fields.every(isShown)),
  }
}

function describeField({ name: _, pattern, ...field }: Field): FieldDescription {
  return pattern ? { ...field, pattern: pattern.source } : field
}
