/**
 * Keyset pagination: cursors, and the SQL conditions that select the rows after one. A cursor contains the sort values
 * of a row, so paging neither skips nor repeats an unchanged row while others are inserted and deleted. Cursors are
 * authenticated, so the server only accepts those it issued.
 */
import { equalsSecret } from '../base/crypto/hash.ts'
import { join, type SqlText, type SqlValue, sql } from '../engines/sql/sql-text.ts'
import { invalidField } from '../errors.ts'
import { cursorCharsMax } from '../limits/api.ts'
import type { Sort, SortKey, SortValue } from './sort.ts'
import { isOrderedInParts, sortText } from './sort.ts'
import { idField, type Table } from './table.ts'
import type { SqlBackEnd } from './to-sql.ts'

export type CursorDirection = 'after' | 'before'

/** Prefix of a cursor. Record ids, which are accepted as cursors too, cannot contain it. */
const cursorMark = '.'

/** Computes the authentication code of a text. */
export type Seal = (text: string) => string

/** What a cursor is bound to; it is rejected for any other list. */
export interface CursorOwner {
  readonly table: Table
  readonly sort: Sort
  readonly direction: CursorDirection
  readonly seal: Seal
}

export function formatCursor({ table, sort, direction, seal }: CursorOwner, values: readonly SortValue[]): string {
  const content = JSON.stringify([table.namespace, table.name, sortText(sort), direction, ...values])
  return `${cursorMark}${Buffer.from(content).toString('base64url')}${cursorMark}${seal(content)}`
}

export const isCursor = (text: string): boolean => text.startsWith(cursorMark)

/**
 * The sort values in a cursor. Throws 400 if it is malformed, modified, or belongs to another table, sort or direction.
 */
export function parseCursor({ table, sort, direction, seal }: CursorOwner, text: string): readonly SortValue[] {
  const refused = invalidField(direction, 'type', 'is not a cursor of this list')
  if (text.length > cursorCharsMax) throw refused
  const [, encoded = '', sealed = '', ...rest] = text.split(cursorMark)
  const json = Buffer.from(encoded, 'base64url').toString()
  // Decoding ignores invalid characters: accept the canonical encoding only.
  const isCanonical = Buffer.from(json).toString('base64url') === encoded
  if (!isCanonical || rest.length > 0 || !equalsSecret(sealed, seal(json))) throw refused
  const content: unknown = JSON.parse(json)
  if (!Array.isArray(content)) throw refused
  const [namespace, name, order, issuedFor, ...values] = content as unknown[]
  if (namespace !== table.namespace || name !== table.name) throw refused
  if (order !== sortText(sort)) throw invalidField(direction, 'type', 'is a cursor of another sort')
  if (issuedFor !== direction)
    throw invalidField(direction, 'type', `is a cursor for "${issuedFor === 'after' ? 'after' : 'before'}"`)
  const types = sort.flatMap((key) => valueTypes(table, key))
  if (values.length !== types.length || !values.every((value, i) => fits(types[i] as string, value))) throw refused
  return values as SortValue[]
}

/** The JavaScript types of a key's sort values. */
function valueTypes(table: Table, { field: fieldName, from }: SortKey): readonly string[] {
  if (from) return ['number']
  if (isOrderedInParts(table, fieldName)) return ['number', 'number', 'string']
  const type = table.fields.get(fieldName)?.type
  return [type === 'number' || type === 'boolean' ? type : 'string']
}

const fits = (type: string, value: unknown): boolean =>
  value === null || (typeof value === type && (type !== 'number' || Number.isFinite(value)))

/** One term of the sort order, as SQL. */
interface OrderTerm {
  readonly column: SqlText
  readonly descending: boolean
  readonly nullable: boolean
  /** The record's id. */
  readonly isKey: boolean
}

const termsOf = (backEnd: SqlBackEnd, table: Table, sort: Sort): OrderTerm[] =>
  sort.flatMap((key) => {
    const { field, descending, nullable } = key
    return backEnd.orderOf(table, key).map((column) => ({
      column,
      descending,
      nullable: nullable && !isOrderedInParts(table, field),
      isKey: field === idField.name,
    }))
  })

/**
 * Conditions whose rows, concatenated, are all rows after the position: first those equal in all keys but the last,
 * then those equal in all but the last two, and so on. Each condition is one range of an index on the sort fields, so a
 * deep page costs as much as the first one.
 */
export function segmentsAfter(
  backEnd: SqlBackEnd,
  table: Table,
  sort: Sort,
  position: readonly SortValue[],
): SqlText[] {
  const segments: SqlText[] = []
  const terms = termsOf(backEnd, table, sort)
  const stored = (value: SortValue | undefined): SqlValue =>
    typeof value === 'boolean' ? backEnd.dialect.fromBoolean(value) : (value ?? null)
  for (let depth = terms.length - 1; depth >= 0; depth--) {
    const equal = terms.slice(0, depth).map(({ column }, i) => equalTo(column, stored(position[i])))
    const { column, descending, nullable } = terms[depth] as OrderTerm
    for (const range of rangesAfter(column, stored(position[depth]), descending, nullable))
      segments.push(join([...equal, range], ' AND '))
  }
  return segments
}

const equalTo = (column: SqlText, value: SqlValue): SqlText =>
  value === null ? sql`${column} IS NULL` : sql`${column} = ${value}`

/** The index ranges after a value. Nulls come first ascending and last descending. */
function rangesAfter(column: SqlText, value: SqlValue, descending: boolean, nullable: boolean): SqlText[] {
  if (!descending) return value === null ? [sql`${column} IS NOT NULL`] : [sql`${column} > ${value}`]
  if (value === null) return []
  return nullable ? [sql`${column} < ${value}`, sql`${column} IS NULL`] : [sql`${column} < ${value}`]
}

/** `ORDER BY` of a sort, with nulls first ascending and last descending on every engine (rule DB-LIST-12). */
export function orderBy(backEnd: SqlBackEnd, table: Table, sort: Sort): SqlText {
  const { ascending, descending } = backEnd.dialect
  const terms = termsOf(backEnd, table, sort).map((term) => {
    // The key is never null; `NULLS FIRST` or `LAST` would keep PostgreSQL from using its index.
    if (term.isKey) return term.descending ? sql`${term.column} DESC` : term.column
    return (term.descending ? descending : ascending)(term.column)
  })
  return join(terms, ', ')
}
