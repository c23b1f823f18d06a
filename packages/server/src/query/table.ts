/**
 * Table definitions as used by everything that selects records: names and types of fields, without rules or storage.
 * The configuration creates them from the user's declarations.
 */

import type { ComputedField } from './computed/expression.ts'

export type FieldType = 'string' | 'text' | 'number' | 'boolean' | 'datetime' | 'json' | 'geo'

export interface Field {
  readonly name: string
  readonly type: FieldType
  readonly required: boolean
  readonly unique: boolean
  /** Default value in stored form (datetimes as UTC text with milliseconds); undefined if none is declared. */
  readonly default?: unknown
  /** Numbers: minimum value. Strings and text: minimum length in code points. */
  readonly min?: number
  readonly max?: number
  readonly pattern?: RegExp
  readonly enum?: readonly (string | number)[]
  /** Foreign key: the table of the same namespace whose `id` the value must be. */
  readonly references?: string
  /** A geo field: whether it has an index of its own. */
  readonly index?: true
  /** Computed from other fields of the row: no write may name it. */
  readonly readOnly?: true
}

export interface Index {
  readonly fields: readonly string[]
  readonly unique: boolean
}

/** How searches of a table rank and what they tolerate; the same on every engine. */
export interface Ranking {
  /** The weights of the searched fields, in their order. */
  readonly weights: readonly number[]
  /** Whether words with one or two typos match. */
  readonly typos: boolean
  /** Whether the last word matches as a prefix. */
  readonly prefix: boolean
  /** Whether words match within longer words. */
  readonly substring: boolean
}

export interface Table {
  readonly namespace: string
  readonly name: string
  /** Whether the namespace is dynamic: every row belongs to one of its instances. */
  readonly perInstance: boolean
  /** Whether no schema was declared: any field name is accepted and stored in one JSON column. */
  readonly schemaless: boolean
  /** Required prefix of undeclared field names; any name is accepted if absent. */
  readonly undeclaredPrefix?: string
  /** All declared fields in the order of a record's JSON: `id`, those of the schema, `createdAt`, `updatedAt`. */
  readonly fields: ReadonlyMap<string, Field>
  /** Fields that only service keys can read, filter and sort by. */
  readonly hidden: ReadonlySet<string>
  readonly indexes: readonly Index[]
  /** Fields of the full-text index, in order; empty when the table has none. */
  readonly search: readonly string[]
  /** Absent: the engine's own full-text index and relevance. */
  readonly ranking?: Ranking
  /** Computed fields, each after those that it reads. */
  readonly computed: readonly ComputedField[]
}

const builtIn = (name: string, type: FieldType): Field => ({ name, type, required: true, unique: name === 'id' })

/** Built-in fields of every record; they cannot be declared. */
export const idField: Field = builtIn('id', 'string')
export const createdAtField: Field = builtIn('createdAt', 'datetime')
export const updatedAtField: Field = builtIn('updatedAt', 'datetime')
export const builtInFieldNames: ReadonlySet<string> = new Set(['id', 'createdAt', 'updatedAt'])
