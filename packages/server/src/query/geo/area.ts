/**
 * Areas of the conditions `near` and `within`: their operands, whether a place is in one, and the cells that cover it.
 * `geo-sql` is the same as SQL. Pure.
 */
import { indexedShareMax, nearMetersMax } from '../../limits/api.ts'
import { type CellRange, coverOf, type Overlap, type Rectangle, shareOf } from './cells.ts'
import { isInPolygon, isInRectangle, type Polygon, parsePolygon, polygonOverlap } from './polygon.ts'
import {
  chordSquared,
  chordSquaredOf,
  findLocation,
  isLonLat,
  type LonLat,
  locationShape,
  radiansOf,
  type Vector,
  vectorOf,
} from './sphere.ts'

/** The places within a distance of one. */
export interface Circle {
  readonly kind: 'circle'
  readonly center: LonLat
  readonly vector: Vector
  /** The squared chord of the distance. */
  readonly most: number
}

export interface Box {
  readonly kind: 'box'
  readonly bounds: Rectangle
}

export type Area = Circle | Box | Polygon

/** An operand that is no area. */
export class AreaError extends Error {
  readonly code: 'type' | 'max' | 'min'

  constructor(code: 'type' | 'max' | 'min', message: string) {
    super(message)
    this.code = code
  }
}

const metersPerUnit: Readonly<Record<string, number>> = { m: 1, km: 1000, mi: 1609.344 }
const distancePattern = /^(\d{1,9}(?:\.\d{1,9})?)(m|km|mi)$/

/** Meters in a text such as `5km`. Throws `AreaError`. */
function parseDistance(value: unknown): number {
  const [, digits, unit = ''] = (typeof value === 'string' && distancePattern.exec(value)) || []
  if (digits === undefined)
    throw new AreaError('type', 'the distance must be a number with the unit m, km or mi, such as "5km"')
  const meters = Number(digits) * (metersPerUnit[unit] as number)
  if (meters > nearMetersMax)
    throw new AreaError('max', `the distance must be at most ${nearMetersMax / 1000}km, half the Earth's circumference`)
  return meters
}

/** The operand of `near`: `[longitude, latitude, distance]`. Throws `AreaError`. */
export function parseCircle(value: unknown): Circle {
  if (!Array.isArray(value) || value.length !== 3)
    throw new AreaError('type', 'must be [longitude, latitude, distance], such as [13.4, 52.5, "5km"]')
  const center = findLocation(value.slice(0, 2))
  if (!center) throw new AreaError('type', `must begin with ${locationShape}`)
  return circleAround(center, parseDistance(value[2]))
}

/** The places within a distance of one. */
export const circleAround = (center: LonLat, meters: number): Circle => ({
  kind: 'circle',
  center,
  vector: vectorOf(center),
  most: chordSquaredOf(meters),
})

/** The operand of `within`: the south-western and north-eastern corner of a box, or a polygon. Throws `AreaError`. */
export function parseWithin(value: unknown): Box | Polygon {
  if (!Array.isArray(value) || value.length < 2)
    throw new AreaError('type', 'must be [[west, south], [east, north]], or a list of the corners of a polygon')
  if (value.length > 2) {
    const parsed = parsePolygon(value)
    if ('message' in parsed) throw new AreaError(parsed.code, parsed.message)
    return parsed
  }
  const [first, second] = value.map(findLocation)
  if (!first || !second) throw new AreaError('type', `the corners of a box must be ${locationShape}`)
  const [[west, south], [east, north]] = [first, second]
  if (west > east)
    throw new AreaError('type', 'the west of the box is east of its east; use one box on each side of the date line')
  if (south > north) throw new AreaError('type', 'the south of the box is north of its north')
  return { kind: 'box', bounds: { west, south, east, north } }
}

/** Whether an area has a place; false for a value that is none, such as null. */
export function isInArea(value: unknown, area: Area): boolean {
  if (!isLonLat(value)) return false
  if (area.kind === 'circle') return chordSquared(vectorOf(value), area.vector) <= area.most
  return area.kind === 'box' ? isInRectangle(value, area.bounds) : isInPolygon(value, area)
}

/** Far more than rounding, and far less than a cell. */
const slackRadians = 1e-9

/**
 * No place of a rectangle is farther from its center than along the parallel to its longitude, and from there to the
 * north or south.
 */
function circleOverlap({ vector, most }: Circle, { west, south, east, north }: Rectangle): Overlap {
  const [longitude, latitude] = [radiansOf((west + east) / 2), radiansOf((south + north) / 2)]
  // The functions of the runtime are exact enough, and faster than those of stored vectors.
  const scale = Math.cos(latitude)
  const center = { x: scale * Math.cos(longitude), y: scale * Math.sin(longitude), z: Math.sin(latitude) }
  const reach = radiansOf((north - south) / 2) + radiansOf((east - west) / 2) * scale
  const radius = angleOf(most)
  const distance = angleOf(chordSquared(center, vector))
  if (distance > radius + reach + slackRadians) return 'apart'
  return distance + reach + slackRadians < radius ? 'inside' : 'partly'
}

/** The angle at the center of the sphere that a squared chord has, in radians. */
const angleOf = (squared: number): number => 2 * Math.asin(Math.min(1, Math.sqrt(squared) / 2))

function boxOverlap(box: Rectangle, { west, south, east, north }: Rectangle): Overlap {
  if (box.west > east || box.east < west || box.south > north || box.north < south) return 'apart'
  return box.west <= west && box.east >= east && box.south <= south && box.north >= north ? 'inside' : 'partly'
}

const covers = new WeakMap<Area, readonly CellRange[]>()

/** The ranges of cells that have every place of an area. */
export function cellsOf(area: Area): readonly CellRange[] {
  const known = covers.get(area)
  if (known) return known
  const cells = coverOf((rectangle) => {
    if (area.kind === 'circle') return circleOverlap(area, rectangle)
    return area.kind === 'box' ? boxOverlap(area.bounds, rectangle) : polygonOverlap(area, rectangle)
  })
  covers.set(area, cells)
  return cells
}

/** About the part of the Earth that an area has; for comparisons. */
export function sizeOf(area: Area): number {
  if (area.kind === 'circle') return area.most / 4
  const { west, south, east, north } = area.bounds
  return ((east - west) * (north - south)) / (360 * 180)
}

/** The ranges of `cellsOf`; null for an area so large that reading the table in the order of a list is faster. */
export function findCells(area: Area): readonly CellRange[] | null {
  const cells = cellsOf(area)
  return shareOf(cells) > indexedShareMax ? null : cells
}
