/** Parses the `sort` parameter against a table. Every sort ends with `id`, which makes the order total. */
import { createLru, type Lru } from '../base/concurrency/lru.ts'
import { invalidField } from '../errors.ts'
import { sortFieldsMax } from '../limits/api.ts'
import { sortTextsMax } from '../limits/sqlite.ts'
import { findFieldType, type TableView } from './filter.ts'
import type { Circle } from './geo/area.ts'
import { type Nearby, nowhere } from './geo/nearby.ts'
import { beyondAllChords, chordSquared, isLonLat, vectorOf } from './geo/sphere.ts'
import type { Row } from './matches.ts'
import { idField, type Table } from './table.ts'

/** Where distances are measured from, and what records without a place sort by. */
export interface DistanceKey {
  readonly circle: Circle
  readonly missing: number
}

export interface SortKey {
  readonly field: string
  readonly descending: boolean
  /** Whether values may be null: nulls come first ascending and last descending. */
  readonly nullable: boolean
  /** Sorts by the distance of the field's place from the center; records without a place are last. */
  readonly from?: DistanceKey
}

/** Never empty; the last key is `id`. */
export type Sort = readonly SortKey[]

const idKey = (descending: boolean): SortKey => ({ field: idField.name, descending, nullable: false })

/** Creation order. */
export const defaultSort: Sort = [idKey(false)]

const distanceSuffix = '.distance'

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

/** The key of `place.distance`; null where the name is that of no geo field. */
function parseDistance(view: TableView, name: string, descending: boolean, nearby: Nearby): SortKey | null {
  if (!name.endsWith(distanceSuffix)) return null
  const field = name.slice(0, -distanceSuffix.length)
  if (findFieldType(view, field) !== 'geo') return null
  const circle = nearby.get(field)
  if (!circle)
    throw invalidField('sort', 'operator', `"${name}" needs a condition ["${field}", "near", …] in the filter`)
  return { field, descending, nullable: false, from: { circle, missing: descending ? -1 : beyondAllChords } }
}

function parseKey(view: TableView, field: string, descending: boolean, nearby: Nearby): SortKey {
  const distance = parseDistance(view, field, descending, nearby)
  if (distance) return distance
  const type = findFieldType(view, field)
  if (type === null) throw invalidField('sort', 'unknown', `Unknown field ${JSON.stringify(field.slice(0, 64))}`)
  if (type === 'geo')
    throw invalidField('sort', 'operator', `"${field}" is a geo field: sort by "${field}${distanceSuffix}"`)
  if (type === 'json') throw invalidField('sort', 'operator', `"${field}" is a JSON field, which has no order`)
  return { field, descending, nullable: !view.table.fields.get(field)?.required }
}

/** Sorts by their texts, with and without hidden fields. Distances depend on the filter and are not among them. */
interface KnownSorts {
  readonly all: Lru<string, Sort>
  readonly visible: Lru<string, Sort>
}

const knownSorts = new WeakMap<Table, KnownSorts>()

function knownSortsOf({ table, showsHidden }: TableView): Lru<string, Sort> {
  let known = knownSorts.get(table)
  if (!known) {
    known = { all: createLru(sortTextsMax), visible: createLru(sortTextsMax) }
    knownSorts.set(table, known)
  }
  return showsHidden ? known.all : known.visible
}

/**
 * Parses `a:asc,b:desc` (a bare name ascends); equal texts have the same `Sort`, except by distance. Throws 400 on
 * unknown, hidden, repeated or unordered fields, and for a distance from nowhere.
 */
export function parseSort(view: TableView, text: string | undefined, nearby: Nearby = nowhere): Sort {
  if (text === undefined) return defaultSort
  const knownTexts = knownSortsOf(view)
  const known = knownTexts.get(text)
  if (known) return known
  const sort = parseKeys(view, text, nearby)
  if (!sort.some(({ from }) => from)) knownTexts.set(text, sort)
  return sort
}

function parseKeys(view: TableView, text: string, nearby: Nearby): Sort {
  const keys: SortKey[] = []
  for (const { name, descending } of parseSortNames(text)) {
    const key = parseKey(view, name, descending, nearby)
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
  sort
    .map(({ field, descending, from }) => {
      const name = from ? `${field}${distanceSuffix}(${from.circle.center.join()})` : field
      return `${name}:${descending ? 'desc' : 'asc'}`
    })
    .join(',')

export type SortValue = string | number | boolean | null

/** Whether the engines order this field by several values: JSON type, then number, then text. */
export const isOrderedInParts = (table: Table, field: string): boolean => !table.fields.has(field)

const distanceValue = ({ circle, missing }: DistanceKey, place: unknown): number =>
  isLonLat(place) ? chordSquared(vectorOf(place), circle.vector) : missing

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
  return sort.flatMap((key): readonly SortValue[] => {
    const { field, from } = key
    const value = Object.hasOwn(row, field) ? row[field] : null
    if (from) return [distanceValue(from, value)]
    return isOrderedInParts(table, field) ? orderParts(value) : [(value ?? null) as SortValue]
  })
}
