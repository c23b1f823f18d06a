/** Random locations and areas for property tests of both back ends. */
import fc from 'fast-check'
import type { Expr } from '../expr.ts'
import { parseCircle, parseWithin } from './area.ts'
import { parsePolygon } from './polygon.ts'
import type { LonLat } from './sphere.ts'

/** Few distinct places, with both poles, the date line and duplicates, and areas around them. */
const longitude = fc.constantFrom(-180, -179.999, -90, 0, 13.4, 13.41, 90, 179.999, 180)
const latitude = fc.constantFrom(-90, -89.999, -45, 0, 52.5, 52.51, 89.999, 90)
export const location: fc.Arbitrary<LonLat> = fc.tuple(longitude, latitude)
const meters = fc.constantFrom('0m', '1m', '1km', '1.5km', '700mi', '5000km', '10008km', '20016km')
export const circle = fc.tuple(longitude, latitude, meters).map(parseCircle)
export const boxed = fc.tuple(location, location).map(([a, b]) =>
  parseWithin([
    [Math.min(a[0], b[0]), Math.min(a[1], b[1])],
    [Math.max(a[0], b[0]), Math.max(a[1], b[1])],
  ]),
)
export const polygon = fc
  .uniqueArray(location, { minLength: 3, maxLength: 7, selector: (one) => one.join() })
  .map(parsePolygon)
  .filter((one) => 'kind' in one)
export const inArea = (name: string): fc.Arbitrary<Expr> =>
  fc.oneof(circle, boxed, polygon).map((area) => ({ kind: 'geo', field: name, area }))
