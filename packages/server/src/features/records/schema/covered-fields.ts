/**
 * The boolean fields at the end of an index, after the id: a condition on them, of a filter or a rule, is evaluated in
 * the index then, and the rows that it excludes are not visited. Only on engines where such a field takes a byte.
 */
import type { Dialect } from '../../../engines/sql/dialect.ts'
import { coveredFieldsMax } from '../../../limits/sqlite.ts'
import type { Table } from '../../../query/table.ts'

export interface CoveringIndex {
  readonly name: string
  readonly fields: readonly string[]
  readonly unique: boolean
  /** Of a geo field: the column in its place. */
  readonly column?: string
}

/** Covered fields by the name of the index; without those that cover none. */
export type CoveredFields = Readonly<Record<string, readonly string[]>>

/** The fields that an index covers when it is created. */
export function coveredBy(table: Table, { fields, unique, column }: CoveringIndex, dialect: Dialect): string[] {
  if (!dialect.coversBooleans || unique || column !== undefined) return []
  const booleans = [...table.fields.values()].filter(({ name, type }) => type === 'boolean' && !fields.includes(name))
  return booleans.slice(0, coveredFieldsMax).map(({ name }) => name)
}

/**
 * Whether an existing index can stay: all that it covers are fields still. It stays if it covers fewer than a new one
 * would, since a new boolean field is no reason to index a large table again.
 */
export const canStay = (table: Table, covered: CoveredFields | undefined, name: string): boolean =>
  (covered?.[name] ?? []).every((field) => table.fields.get(field)?.type === 'boolean')

/** What the indexes of a table cover once it is migrated; `known` is what they covered before, by name. */
export function describeCovered(
  table: Table,
  indexes: readonly CoveringIndex[],
  dialect: Dialect,
  known: { readonly indexes: object; readonly covered?: CoveredFields } = { indexes: {} },
): { covered?: CoveredFields } {
  const stays = (name: string): boolean => Object.hasOwn(known.indexes, name) && canStay(table, known.covered, name)
  const entries = indexes
    .map((index) => [
      index.name,
      stays(index.name) ? (known.covered?.[index.name] ?? []) : coveredBy(table, index, dialect),
    ])
    .filter(([, fields]) => fields !== undefined && fields.length > 0)
  return entries.length > 0 ? { covered: Object.fromEntries(entries) } : {}
}
