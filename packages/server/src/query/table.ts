/**
 * What a table is to everything that selects records: names and types of its fields. No rules, no storage.
 * Config makes these from what users declare; the expression tree, its back ends and the records feature read them.
 */

export type FieldType = 'string' | 'text' | 'number' | 'boolean' | 'datetime' | 'json'

export interface Field {
  readonly name: string
  readonly type: FieldType
  readonly required: boolean
  readonly unique: boolean
  /** Stored form (datetimes as UTC milliseconds text); undefined when none is declared. */
  readonly default?: unknown
  /** Numbers: least value. Strings and text: least length in code points. */
  readonly min?: number
  readonly max?: number
  readonly pattern?: RegExp
  readonly enum?: readonly (string | number)[]
  /** Table of the same namespace whose `id` the value must be. */
  readonly references?: string
}

export interface Index {
  readonly fields: readonly string[]
  readonly unique: boolean
}

export interface Table {
  readonly namespace: string
  readonly name: string
  /** Whether the namespace is dynamic: every row belongs to one of its instances. */
  readonly perInstance: boolean
  /** True when no schema was declared: any field name is accepted and kept in one JSON column. */
  readonly schemaless: boolean
  /** What the name of every undeclared field begins with; any will do where it is left out. */
  readonly undeclaredPrefix?: string
  /** Every declared field in order of a record's JSON: `id`, the schema's, `createdAt`, `updatedAt`. */
  readonly fields: ReadonlyMap<string, Field>
  /** Never sent to, filtered or sorted on by anyone but the service key. */
  readonly hidden: ReadonlySet<string>
  readonly indexes: readonly Index[]
  /** Fields of the full-text index, in order; empty when the table has none. */
  readonly search: readonly string[]
}

const builtIn = (name: string, type: FieldType): Field => ({ name, type, required: true, unique: name === 'id' })

/** Fields every record has; users cannot declare them. */
export const idField: Field = builtIn('id', 'string')
export const createdAtField: Field = builtIn('createdAt', 'datetime')
export const updatedAtField: Field = builtIn('updatedAt', 'datetime')
export const builtInFieldNames: ReadonlySet<string> = new Set(['id', 'createdAt', 'updatedAt'])
