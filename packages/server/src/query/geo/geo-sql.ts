/**
 * Geo fields in SQL: the columns that stand beside a field's JSON, and conditions and distances on them. The same
 * additions, multiplications and comparisons of doubles as in `area` and `sphere`, so every engine and JavaScript agree
 * on every place.
 */
import type { Dialect, TableRef } from '../../engines/sql/dialect.ts'
import { ident, join, type SqlScalar, type SqlText, sql } from '../../engines/sql/sql-text.ts'
import type { Field } from '../table.ts'
import { type Area, type Circle, findCells } from './area.ts'
import { cellOf, type Rectangle } from './cells.ts'
import type { Polygon } from './polygon.ts'
import { isLonLat, type Vector, vectorOf } from './sphere.ts'

const parts = ['lon', 'lat', 'x', 'y', 'z', 'cell'] as const
type Part = (typeof parts)[number]

/** Declared names do not begin with an underscore. */
const columnName = (fieldName: string, part: Part): string => `_${part}_${fieldName}`

/** Names of the columns beside a geo field, in the order of `geoValues`: numbers, all null where the field is. */
export const geoColumns = (fieldName: string): readonly string[] => parts.map((part) => columnName(fieldName, part))

/** The column of the cell, which an index of the field consists of. */
export const cellColumn = (fieldName: string): string => columnName(fieldName, 'cell')

/** A table under an alias. */
export interface GeoSource {
  readonly alias: SqlText
  readonly table: TableRef
  readonly dialect: Dialect
}

export function geoValues(place: unknown): readonly SqlScalar[] {
  if (!isLonLat(place)) return parts.map(() => null)
  const { x, y, z } = vectorOf(place)
  return [place[0], place[1], x, y, z, cellOf(place)]
}

/** A column of a geo field of the table under an alias. */
const columnOf = (alias: SqlText, fieldName: string, part: Part): SqlText =>
  sql`${alias}.${ident(columnName(fieldName, part))}`

function chordSquaredSql(alias: SqlText, fieldName: string, { x, y, z }: Vector): SqlText {
  const [from, north, up] = (['x', 'y', 'z'] as const).map((part) => columnOf(alias, fieldName, part))
  const square = (column: SqlText | undefined, value: number): SqlText =>
    sql`(${column as SqlText} - ${value}) * (${column as SqlText} - ${value})`
  return sql`${square(from, x)} + ${square(north, y)} + ${square(up, z)}`
}

/** The squared chord to a place, and `missing` for a record without one. */
export const distanceOrder = (alias: SqlText, fieldName: string, center: Vector, missing: number): SqlText =>
  sql`coalesce(${chordSquaredSql(alias, fieldName, center)}, ${missing})`

const within = (longitude: SqlText, latitude: SqlText, { west, south, east, north }: Rectangle): SqlText =>
  sql`${longitude} >= ${west} AND ${longitude} <= ${east} AND ${latitude} >= ${south} AND ${latitude} <= ${north}`

/** Statements have one text for each multiple, so that few are prepared. */
const sidesStep = 8

/** Crossed by no line. */
const noSide = { south: 1, north: 0, start: 0, slope: 0 }

function inPolygon(longitude: SqlText, latitude: SqlText, { bounds, sides }: Polygon): SqlText {
  const padded = [...sides]
  while (padded.length % sidesStep > 0) padded.push(noSide)
  const crossings = padded.map(
    ({ south, north, start, slope }) =>
      sql`CASE WHEN ${latitude} >= ${south} AND ${latitude} < ${north} AND ${longitude} < ${start} + (${latitude} - ${south}) * ${slope} THEN 1 ELSE 0 END`,
  )
  return sql`${within(longitude, latitude, bounds)} AND (${join(crossings, ' + ')}) % 2 = 1`
}

/** The ranges of cells of an area; null without an index, and for an area that is too large for one. */
const rangesOf = (column: SqlText, { index }: Field, area: Area): readonly SqlText[] | null =>
  (index ? findCells(area) : null)?.map(({ first, last }) => sql`${column} >= ${first} AND ${column} <= ${last}`) ??
  null

interface AreaKeys {
  readonly table: TableRef
  readonly field: Field
  readonly keys: SqlText | null
}

/** The last of each area: a page takes them for its condition and for the number of its visits. */
const keysOfAreas = new WeakMap<Area, AreaKeys>()

/** Selects the keys of the records in the cells of an area, on an engine that has them; null without an index. */
export function areaKeysSql({ table, dialect }: GeoSource, field: Field, area: Area): SqlText | null {
  const { rowKey } = dialect
  if (!rowKey) return null
  const known = keysOfAreas.get(area)
  if (known && known.table === table && known.field === field) return known.keys
  const inner = ident('_near')
  const ranges = rangesOf(columnOf(inner, field.name, 'cell'), field, area)
  const selects = ranges?.map(
    (range) => sql`SELECT ${inner}.${rowKey} FROM ${dialect.from(table, inner)} WHERE ${range}`,
  )
  const keys = selects ? join(selects, ' UNION ALL ') : null
  keysOfAreas.set(area, { table, field, keys })
  return keys
}

/**
 * Whether the place of a record is in an area; null or false where it has none. With an index the records in its cells
 * are found first: on an engine with row keys by a sub-select, since its planner prefers an index in the order of a
 * list to several ranges of another.
 */
export function inAreaSql(source: GeoSource, field: Field, area: Area): SqlText {
  const { alias, dialect } = source
  const exact = exactly(alias, field.name, area)
  const keys = areaKeysSql(source, field, area)
  if (keys && dialect.rowKey) return sql`(${alias}.${dialect.rowKey} IN (${keys}) AND ${exact})`
  const ranges = rangesOf(columnOf(alias, field.name, 'cell'), field, area)
  return ranges ? sql`((${join(ranges, ' OR ')}) AND ${exact})` : sql`(${exact})`
}

/** Whether the place of a record is in an area, without an index; null or false where it has none. */
export function exactly(alias: SqlText, name: string, area: Area): SqlText {
  if (area.kind === 'circle') return inCircle(alias, name, area)
  const [longitude, latitude] = [columnOf(alias, name, 'lon'), columnOf(alias, name, 'lat')]
  return area.kind === 'box' ? within(longitude, latitude, area.bounds) : inPolygon(longitude, latitude, area)
}

const inCircle = (alias: SqlText, name: string, { vector, most }: Circle): SqlText =>
  sql`${chordSquaredSql(alias, name, vector)} <= ${most}`
