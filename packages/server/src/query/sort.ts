/** Parses the `sort` parameter against a table. Every sort ends with `id`, which makes the order total. */
import { invalidField } from '../errors.ts'
import { sortFieldsMax } from '../limits/api.ts'
import { findFieldType, type TableView } from './filter.ts'
import type { Row } from './matches.ts'
import { idField, type Table } from './table.ts'

export interface SortKey {
  readonly field: string
  readonly descending: boolean
  /** Whether values may be null: nulls come first ascending and last descending. */
  readonly nullable: boolean
}

/** Never empty; the last key is `id`. */
export type Sort = readonly SortKey[]

const idKey = (descending: boolean): SortKey => ({ field: idField.name, descending, nullable: false })

/** Creation order. */
export const defaultSort: Sort = [idKey(false)]

const directions: Readonly<Record<string, boolean>> = { asc: false, desc: true }

/** The parts of `a:asc,b:desc` (a bare name ascends). Throws 400 for an unknown direction and too many names. */
export function parseSortNames(text: string): readonly { readonly name: string; readonly descending: boolean }[] {
  const parts = text.split(',')
  if (parts.length > sortFieldsMax) throw invalidField('sort', 'max', `at most ${sortFieldsMax} fields are allowed`)
  return parts.map((one) => {
    const part = one.trim()
    const colon = part.lastIndexOf(':')
    const direction = colon < 0 ? 'asc' : part.slice(colon + 1)
    const descending = Object.hasOwn(directions, direction) ? directions[direction] : undefined
    if (descending === undefined) throw invalidField('sort', 'type', 'must be field:asc or field:desc, comma-separated')
    return { name: colon < 0 ? part : part.slice(0, colon), descending }
  })
}

function parseKey(view: TableView, field: string, descending: boolean): SortKey {
  const type = findFieldType(view, field)
  if (type === null) throw invalidField('sort', 'unknown', `Unknown field ${JSON.stringify(field.slice(0, 64))}`)
  if (type === 'json') throw invalidField('sort', 'operator', `"${field}" is a JSON field, which has no order`)
  return { field, descending, nullable: !view.table.fields.get(field)?.required }
}

/** Parses `a:asc,b:desc` (a bare name ascends). Throws 400 on unknown, hidden, repeated or unordered fields. */
export function parseSort(view: TableView, text: string | undefined): Sort {
  if (text === undefined) return defaultSort
  const keys: SortKey[] = []
  for (const { name, descending } of parseSortNames(text)) {
    const key = parseKey(view, name, descending)
    if (keys.some(({ field }) => field === key.field))
      throw invalidField('sort', 'unique', `"${key.field}" is named twice`)
    keys.push(key)
  }
  const idAt = keys.findIndex(({ field }) => field === idField.name)
  // Ids are unique: keys after `id` have no effect.
  return idAt < 0 ? [...keys, idKey(keys.at(-1)?.descending ?? false)] : keys.slice(0, idAt + 1)
}

export const reverseSort = (sort: Sort): Sort => sort.map((key) => ({ ...key, descending: !key.descending }))

/** The canonical text of a sort, which binds a cursor to it. */
export const sortText = (sort: Sort): string =>
  sort.map(({ field, descending }) => `${field}:${descending ? 'desc' : 'asc'}`).join(',')

export type SortValue = string | number | boolean | null

/** Whether the engines order this field by several values: JSON type, then number, then text. */
export const isOrderedInParts = (table: Table, field: string): boolean => !table.fields.has(field)

/**
 * The sort values of an undeclared field: nulls first, then numbers and booleans, then text. Arrays and objects sort by
 * their JSON text.
 */
function orderParts(value: unknown): readonly [number, number, string] {
  if (value === null || value === undefined) return [0, 0, '']
  if (typeof value === 'boolean' || typeof value === 'number') return [1, Number(value), '']
  return [2, 0, typeof value === 'string' ? value : JSON.stringify(value)]
}

/** A row's position in the order: the values the engines sort by, computed from the API-level row. */
export function sortValues(sort: Sort, table: Table, row: Row): SortValue[] {
  return sort.flatMap(({ field }): readonly SortValue[] => {
    const value = Object.hasOwn(row, field) ? row[field] : null
    return isOrderedInParts(table, field) ? orderParts(value) : [(value ?? null) as SortValue]
  })
}
