/**
 * Cursors: a place in a total order, and the pieces of SQL that select what comes after it. A place is the sort values
 * of a row, so paging neither skips nor repeats a row that stays, whatever other rows do. They are sealed, so that a
 * place is only ever one the server gave.
 */
import { equalsSecret } from '../base/crypto/hash.ts'
import { join, type SqlText, type SqlValue, sql } from '../engines/sql/sql-text.ts'
import { invalidField } from '../errors.ts'
import { cursorCharsMax } from '../limits/api.ts'
import type { Sort, SortValue } from './sort.ts'
import { isOrderedInParts, sortText } from './sort.ts'
import { idField, type Table } from './table.ts'
import type { SqlBackEnd } from './to-sql.ts'

export type CursorDirection = 'after' | 'before'

/** Marks a cursor: a character no record id can hold, since plain ids are accepted as cursors too. */
const cursorMark = '.'

/** Seals a text so that a changed one is recognised. */
export type Seal = (text: string) => string

/** What a cursor belongs to; replayed anywhere else it is refused. */
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
 * The sort values inside a cursor. Throws 400 when it is malformed, changed, or belongs to another table, sort or
 * direction.
 */
export function parseCursor({ table, sort, direction, seal }: CursorOwner, text: string): readonly SortValue[] {
  const refused = invalidField(direction, 'type', 'is not a cursor of this list')
  if (text.length > cursorCharsMax) throw refused
  const [, encoded = '', sealed = '', ...rest] = text.split(cursorMark)
  const json = Buffer.from(encoded, 'base64url').toString()
  // Decoding skips foreign characters: only the one spelling is a cursor.
  const isCanonical = Buffer.from(json).toString('base64url') === encoded
  if (!isCanonical || rest.length > 0 || !equalsSecret(sealed, seal(json))) throw refused
  const content: unknown = JSON.parse(json)
  if (!Array.isArray(content)) throw refused
  const [namespace, name, order, way, ...values] = content as unknown[]
  if (namespace !== table.namespace || name !== table.name) throw refused
  if (order !== sortText(sort)) throw invalidField(direction, 'type', 'belongs to another sort')
  if (way !== direction)
    throw invalidField(direction, 'type', `is a cursor for "${way === 'after' ? 'after' : 'before'}"`)
  const types = sort.flatMap(({ field }) => valueTypes(table, field))
  if (values.length !== types.length || !values.every((value, i) => fits(types[i] as string, value))) throw refused
  return values as SortValue[]
}

/** The JavaScript types of what a field is ordered by. */
function valueTypes(table: Table, fieldName: string): readonly string[] {
  if (isOrderedInParts(table, fieldName)) return ['number', 'number', 'string']
  const type = table.fields.get(fieldName)?.type
  return [type === 'number' || type === 'boolean' ? type : 'string']
}

const fits = (type: string, value: unknown): boolean =>
  value === null || (typeof value === type && (type !== 'number' || Number.isFinite(value)))

/** One value of the order, as SQL. */
interface OrderTerm {
  readonly column: SqlText
  readonly descending: boolean
  readonly nullable: boolean
  /** The record's id. */
  readonly isKey: boolean
}

const termsOf = (backEnd: SqlBackEnd, table: Table, sort: Sort): OrderTerm[] =>
  sort.flatMap(({ field, descending, nullable }) =>
    backEnd.orderOf(table, field).map((column) => ({
      column,
      descending,
      nullable: nullable && !isOrderedInParts(table, field),
      isKey: field === idField.name,
    })),
  )

/**
 * Conditions whose rows, one after another, are all rows behind the place in the order: first those equal in all keys
 * but the last, then those equal in all but the last two, and so on. Each is a range of an index on the sort's fields,
 * so a deep page costs what the first one does.
 */
export function segmentsAfter(backEnd: SqlBackEnd, table: Table, sort: Sort, place: readonly SortValue[]): SqlText[] {
  const segments: SqlText[] = []
  const terms = termsOf(backEnd, table, sort)
  const stored = (value: SortValue | undefined): SqlValue =>
    typeof value === 'boolean' ? backEnd.dialect.fromBoolean(value) : (value ?? null)
  for (let depth = terms.length - 1; depth >= 0; depth--) {
    const equal = terms.slice(0, depth).map(({ column }, i) => equalTo(column, stored(place[i])))
    const { column, descending, nullable } = terms[depth] as OrderTerm
    for (const behind of behindOf(column, stored(place[depth]), descending, nullable))
      segments.push(join([...equal, behind], ' AND '))
  }
  return segments
}

const equalTo = (column: SqlText, value: SqlValue): SqlText =>
  value === null ? sql`${column} IS NULL` : sql`${column} = ${value}`

/** Nulls come first ascending and last descending; each part is one range. */
function behindOf(column: SqlText, value: SqlValue, descending: boolean, nullable: boolean): SqlText[] {
  if (!descending) return value === null ? [sql`${column} IS NOT NULL`] : [sql`${column} > ${value}`]
  if (value === null) return []
  return nullable ? [sql`${column} < ${value}`, sql`${column} IS NULL`] : [sql`${column} < ${value}`]
}

/** `ORDER BY` of a sort, with nulls where CONTRACT wants them on every engine. */
export function orderBy(backEnd: SqlBackEnd, table: Table, sort: Sort): SqlText {
  const { ascending, descending } = backEnd.dialect
  const terms = termsOf(backEnd, table, sort).map((term) => {
    // The key is never null, and its index says nothing of nulls: where they go would keep it from being used.
    if (term.isKey) return term.descending ? sql`${term.column} DESC` : term.column
    return (term.descending ? descending : ascending)(term.column)
  })
  return join(terms, ', ')
}
