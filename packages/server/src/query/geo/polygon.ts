/**
 * Polygons in the plane of longitude and latitude, whose sides are straight lines there: validation, and whether a
 * place is inside, with the operations of the SQL condition in `geo-sql`. Pure.
 */
import { polygonPointsMax } from '../../limits/api.ts'
import type { Overlap, Rectangle } from './cells.ts'
import { findLocation, type LonLat, locationShape } from './sphere.ts'

/**
 * A side that is not horizontal, from its southern to its northern end: equal for two polygons that share it, so that
 * no place is inside both. It passes through `west + (latitude - south) * slope`.
 */
export interface Side {
  readonly south: number
  readonly north: number
  /** The longitude of the southern end. */
  readonly start: number
  readonly slope: number
}

export interface Polygon {
  readonly kind: 'polygon'
  readonly bounds: Rectangle
  readonly points: readonly LonLat[]
  readonly sides: readonly Side[]
}

/** What is wrong with a polygon; `code` is that of a field error. */
export interface PolygonProblem {
  readonly code: 'type' | 'max' | 'min'
  readonly message: string
}

const isSame = (a: LonLat, b: LonLat): boolean => a[0] === b[0] && a[1] === b[1]

/** The corners in order, each once: without the repetition that closes the ring, and repeated neighbors. */
function cornersOf(ring: readonly LonLat[]): LonLat[] {
  const corners = ring.filter((point, at) => at === 0 || !isSame(point, ring[at - 1] as LonLat))
  if (corners.length > 1 && isSame(corners[0] as LonLat, corners.at(-1) as LonLat)) corners.pop()
  return corners
}

/** Positive if `c` is left of the line from `a` to `b`, negative if it is right of it, 0 on it. */
const orientation = (a: LonLat, b: LonLat, c: LonLat): number =>
  (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])

/** Whether `point`, which is on the line through `a` and `b`, is between them. */
const isBetween = (a: LonLat, b: LonLat, point: LonLat): boolean =>
  Math.min(a[0], b[0]) <= point[0] &&
  point[0] <= Math.max(a[0], b[0]) &&
  Math.min(a[1], b[1]) <= point[1] &&
  point[1] <= Math.max(a[1], b[1])

/** Whether two segments have a point in common. */
function meet(a: LonLat, b: LonLat, c: LonLat, d: LonLat): boolean {
  const [abc, abd, cda, cdb] = [
    orientation(a, b, c),
    orientation(a, b, d),
    orientation(c, d, a),
    orientation(c, d, b),
  ].map(Math.sign)
  if (abc !== abd && cda !== cdb) return true
  return (
    (abc === 0 && isBetween(a, b, c)) ||
    (abd === 0 && isBetween(a, b, d)) ||
    (cda === 0 && isBetween(c, d, a)) ||
    (cdb === 0 && isBetween(c, d, b))
  )
}

/** Whether the sides touch anywhere but at the corner that two neighbors share. */
function isCrossed(corners: readonly LonLat[]): boolean {
  const count = corners.length
  const corner = (at: number): LonLat => corners[at % count] as LonLat
  for (let at = 0; at < count; at++) {
    // A neighbor that runs back over this side.
    const [a, b, c] = [corner(at), corner(at + 1), corner(at + 2)]
    if (orientation(a, b, c) === 0 && (isBetween(a, b, c) || isBetween(b, c, a))) return true
    for (let other = at + 2; other < count; other++) {
      const isNeighbor = at === 0 && other === count - 1
      if (!isNeighbor && meet(a, b, corner(other), corner(other + 1))) return true
    }
  }
  return false
}

/** The sides of the corners; horizontal ones are none, since a line to the east never crosses them. */
function sidesOf(corners: readonly LonLat[]): Side[] {
  return corners.flatMap((one, at): Side[] => {
    const other = corners[(at + 1) % corners.length] as LonLat
    if (one[1] === other[1]) return []
    const [[start, south], [end, north]] = one[1] < other[1] ? [one, other] : [other, one]
    return [{ south, north, start, slope: (end - start) / (north - south) }]
  })
}

function boundsOf(corners: readonly LonLat[]): Rectangle {
  const [longitudes, latitudes] = [corners.map(([longitude]) => longitude), corners.map(([, latitude]) => latitude)]
  return {
    west: Math.min(...longitudes),
    south: Math.min(...latitudes),
    east: Math.max(...longitudes),
    north: Math.max(...latitudes),
  }
}

/** The polygon of a list of corners, which may be closed by repeating the first; or what is wrong with it. */
export function parsePolygon(ring: readonly unknown[]): Polygon | PolygonProblem {
  if (ring.length > polygonPointsMax)
    return { code: 'max', message: `a polygon has at most ${polygonPointsMax} points` }
  const locations = ring.map(findLocation)
  const wrong = locations.indexOf(null)
  if (wrong >= 0) return { code: 'type', message: `point ${wrong + 1} must be ${locationShape}` }
  const corners = cornersOf(locations as readonly LonLat[])
  if (corners.length < 3) return { code: 'min', message: 'a polygon has at least three different points' }
  const far = corners.findIndex(([longitude], at) => {
    const [next] = corners[(at + 1) % corners.length] as LonLat
    return Math.abs(next - longitude) > 180
  })
  if (far >= 0)
    return {
      code: 'type',
      message: `the side from ${JSON.stringify(corners[far])} crosses the date line; use one polygon on each side of it`,
    }
  if (isCrossed(corners)) return { code: 'type', message: 'the sides of a polygon must not touch or cross each other' }
  return { kind: 'polygon', bounds: boundsOf(corners), points: corners, sides: sidesOf(corners) }
}

export const isInRectangle = ([longitude, latitude]: LonLat, { west, south, east, north }: Rectangle): boolean =>
  longitude >= west && longitude <= east && latitude >= south && latitude <= north

/**
 * Whether a line from the place to the east crosses an odd number of sides. Of a polygon's own sides, the western and
 * southern ones belong to it.
 */
export function isInPolygon(place: LonLat, { bounds, sides }: Polygon): boolean {
  if (!isInRectangle(place, bounds)) return false
  const [longitude, latitude] = place
  let crossings = 0
  for (const { south, north, start, slope } of sides)
    if (latitude >= south && latitude < north && longitude < start + (latitude - south) * slope) crossings += 1
  return crossings % 2 === 1
}

/** Rounding of a cross product of degrees. */
const orientationSlack = 1e-8

/** Whether a line between two points may pass through a rectangle; never false where it does. */
function passes(a: LonLat, b: LonLat, { west, south, east, north }: Rectangle): boolean {
  if (Math.max(a[0], b[0]) < west || Math.min(a[0], b[0]) > east) return false
  if (Math.max(a[1], b[1]) < south || Math.min(a[1], b[1]) > north) return false
  const orientations = [
    orientation(a, b, [west, south]),
    orientation(a, b, [west, north]),
    orientation(a, b, [east, south]),
    orientation(a, b, [east, north]),
  ]
  return !orientations.every((one) => one > orientationSlack) && !orientations.every((one) => one < -orientationSlack)
}

export function polygonOverlap(polygon: Polygon, rectangle: Rectangle): Overlap {
  const { bounds, points } = polygon
  const { west, south, east, north } = rectangle
  if (bounds.west > east || bounds.east < west || bounds.south > north || bounds.north < south) return 'apart'
  const isOnEdge = points.some((point, at) => passes(point, points[(at + 1) % points.length] as LonLat, rectangle))
  if (isOnEdge) return 'partly'
  return isInPolygon([(west + east) / 2, (south + north) / 2], polygon) ? 'inside' : 'apart'
}
