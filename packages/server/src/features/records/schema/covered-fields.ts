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

/** Indexes of a table as last migrated, by name, and what they cover. */
interface KnownIndexes {
  readonly indexes: object
  readonly covered?: CoveredFields
}

/**
 * Whether an index exists and can stay: all that it covers are boolean fields still. It stays if it covers fewer than a
 * new one would, since a new boolean field is no reason to index a large table again.
 */
export const canStay = (table: Table, { indexes, covered }: KnownIndexes, name: string): boolean =>
  Object.hasOwn(indexes, name) && (covered?.[name] ?? []).every((field) => table.fields.get(field)?.type === 'boolean')

/** What the indexes of a table cover once it is migrated. */
export function describeCovered(
  table: Table,
  indexes: readonly CoveringIndex[],
  dialect: Dialect,
  known: KnownIndexes = { indexes: {} },
): { covered?: CoveredFields } {
  const covered: Record<string, readonly string[]> = {}
  for (const index of indexes) {
    const { name } = index
    const fields = canStay(table, known, name) ? (known.covered?.[name] ?? []) : coveredBy(table, index, dialect)
    if (fields.length > 0) covered[name] = fields
  }
  return Object.keys(covered).length > 0 ? { covered } : {}
}
