import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { geoRangesMax, nearMetersMax } from '../../limits/api.ts'
import { AreaError, cellsOf, isInArea, parseCircle, parseWithin } from './area.ts'
import { cellOf } from './cells.ts'
import { chordSquared, findLocation, type LonLat, metersOf, vectorOf } from './sphere.ts'

const radiusM = 6_371_008.8
const radians = (degrees: number): number => (degrees * Math.PI) / 180

/** The distance by the formula of Vincenty for a sphere, with the functions of the runtime. */
function greatCircle([lon1, lat1]: LonLat, [lon2, lat2]: LonLat): number {
  const [a, b, d] = [radians(lat1), radians(lat2), radians(lon2 - lon1)]
  const y = Math.hypot(Math.cos(b) * Math.sin(d), Math.cos(a) * Math.sin(b) - Math.sin(a) * Math.cos(b) * Math.cos(d))
  return radiusM * Math.atan2(y, Math.sin(a) * Math.sin(b) + Math.cos(a) * Math.cos(b) * Math.cos(d))
}

const degrees = (most: number): fc.Arbitrary<number> =>
  fc.oneof(fc.double({ min: -most, max: most, noNaN: true }), fc.constantFrom(-most, -most / 2, 0, most / 2, most))
const location: fc.Arbitrary<LonLat> = fc.tuple(degrees(180), degrees(90)).map((one) => findLocation(one) as LonLat)
const runs = { numRuns: 3000 }

const distance = (a: LonLat, b: LonLat): number => metersOf(chordSquared(vectorOf(a), vectorOf(b)))

/** Points of a star around a center: a polygon that does not cross itself. */
const star: fc.Arbitrary<LonLat[]> = fc
  .tuple(
    fc.double({ min: -120, max: 120, noNaN: true }),
    fc.double({ min: -40, max: 40, noNaN: true }),
    fc.array(fc.double({ min: 0.1, max: 45, noNaN: true }), { minLength: 5, maxLength: 20 }),
  )
  .map(([lon, lat, radii]) =>
    radii.map((radius, at) => {
      const angle = (2 * Math.PI * at) / radii.length
      return [lon + radius * Math.cos(angle), lat + radius * Math.sin(angle)]
    }),
  )

/** How often the corners go around a place. */
const windings = ([x, y]: LonLat, ring: readonly LonLat[]): number =>
  Math.round(
    ring.reduce((sum, [ax, ay], at) => {
      const [bx, by] = ring[(at + 1) % ring.length] as LonLat
      return sum + Math.atan2((ax - x) * (by - y) - (ay - y) * (bx - x), (ax - x) * (bx - x) + (ay - y) * (by - y))
    }, 0) /
      (2 * Math.PI),
  )

const isCovered = (one: LonLat, area: Parameters<typeof cellsOf>[0]): boolean =>
  cellsOf(area).some(({ first, last }) => cellOf(one) >= first && cellOf(one) <= last)

test('[DB-GEO-7] distances are those of great circles, within a centimeter', () => {
  fc.assert(
    fc.property(location, location, (a, b) => {
      const far = greatCircle(a, b)
      // Near the opposite point the chord hardly changes with the distance.
      expect(Math.abs(distance(a, b) - far)).toBeLessThan(far > 19_900_000 ? 1 : 0.01)
      expect(distance(a, b)).toBe(distance(b, a))
    }),
    runs,
  )
})

test.each<[LonLat, LonLat]>([
  [
    [180, 10],
    [-180, 10],
  ],
  [
    [17, 90],
    [-140, 90],
  ],
  [
    [17, -90],
    [180, -90],
  ],
])('[DB-GEO-7] %j and %j are one point', (a, b) => {
  expect(vectorOf(a)).toEqual(vectorOf(b))
  expect(distance(a, b)).toBe(0)
})

test('[DB-GEO-7] near agrees with the distance, and its cells have every place in it', () => {
  fc.assert(
    fc.property(location, location, fc.double({ min: 0, max: 20_000_000, noNaN: true }), (center, one, meters) => {
      const area = parseCircle([...center, `${meters.toFixed(3)}m`])
      const far = greatCircle(center, one)
      if (Math.abs(far - meters) > 1) expect(isInArea(one, area)).toBe(far < meters)
      if (isInArea(one, area)) expect(isCovered(one, area)).toBe(true)
      expect(isInArea(center, area)).toBe(true)
      expect(isCovered(center, area)).toBe(true)
      expect(cellsOf(area).length).toBeLessThanOrEqual(geoRangesMax)
    }),
    runs,
  )
})

test('[DB-GEO-7] half the circumference reaches every place', () => {
  fc.assert(
    fc.property(location, ([lon, lat]) => {
      const opposite: LonLat = [lon > 0 ? lon - 180 : lon + 180, -lat]
      expect(isInArea(opposite, parseCircle([lon, lat, `${nearMetersMax}m`]))).toBe(true)
    }),
  )
})

test('[DB-GEO-6] a polygon has the places that its sides go around, and its cells have them', () => {
  fc.assert(
    fc.property(star, location, fc.boolean(), (ring, one, isClosed) => {
      const area = parseWithin(isClosed ? [...ring, ring[0]] : ring)
      expect(isInArea(one, area)).toBe(windings(one, ring) !== 0)
      if (isInArea(one, area)) expect(isCovered(one, area)).toBe(true)
      for (const corner of ring) if (isInArea(corner, area)) expect(isCovered(corner, area)).toBe(true)
      expect(isInArea(one, parseWithin(ring.toReversed()))).toBe(isInArea(one, area))
    }),
    runs,
  )
})

test('[DB-GEO-6] polygons that share a side share no location, and leave none out', () => {
  const inner: LonLat[] = [
    [0, 0],
    [30, 7],
    [10, 40],
  ]
  const outer: LonLat[] = [
    [0, 0],
    [30, 7],
    [20, -30],
  ]
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1, noNaN: true }), (part) => {
      const one: LonLat = [30 * part, 7 * part]
      const counts = [inner, outer].map((ring) => isInArea(one, parseWithin(ring)))
      if (part > 0 && part < 1) expect(counts.filter(Boolean)).toHaveLength(1)
    }),
    runs,
  )
})

test('[DB-GEO-5] a box has its edges, and its cells have every place in it', () => {
  fc.assert(
    fc.property(location, location, location, (a, b, one) => {
      const [west, south] = [Math.min(a[0], b[0]), Math.min(a[1], b[1])]
      const [east, north] = [Math.max(a[0], b[0]), Math.max(a[1], b[1])]
      const area = parseWithin([
        [west, south],
        [east, north],
      ])
      for (const corner of [
        [west, south],
        [east, north],
        [west, north],
        [east, south],
      ] as const) {
        expect(isInArea(corner, area)).toBe(true)
        expect(isCovered(corner, area)).toBe(true)
      }
      const isIn = one[0] >= west && one[0] <= east && one[1] >= south && one[1] <= north
      expect(isInArea(one, area)).toBe(isIn)
      if (isIn) expect(isCovered(one, area)).toBe(true)
    }),
    runs,
  )
})

test('[DB-GEO-4] [DB-GEO-5] a value that is no place is in no area', () => {
  for (const value of [null, undefined, [], [1], [1, 2, 3], ['1', 2], [181, 0], [0, 91], [Number.NaN, 0], {}])
    for (const area of [
      parseCircle([0, 0, '20000km']),
      parseWithin([
        [-180, -90],
        [180, 90],
      ]),
    ])
      expect(isInArea(value, area)).toBe(false)
})

describe('what is no area', () => {
  const triangle = [
    [0, 0],
    [10, 0],
    [0, 10],
  ]
  const many = Array.from({ length: 101 }, (_, at) => [at, at % 2])

  test.each<[name: string, parse: (value: unknown) => unknown, value: unknown, message: string]>([
    ['near', parseCircle, [0, 0], 'must be [longitude, latitude, distance]'],
    ['near', parseCircle, { lon: 0 }, 'must be [longitude, latitude, distance]'],
    ['near', parseCircle, [181, 0, '1km'], 'must begin with [longitude, latitude]'],
    ['near', parseCircle, [0, -90.1, '1km'], 'must begin with [longitude, latitude]'],
    ['near', parseCircle, [Number.NaN, 0, '1km'], 'must begin with [longitude, latitude]'],
    ['near', parseCircle, [Number.POSITIVE_INFINITY, 0, '1km'], 'must begin with [longitude, latitude]'],
    ['near', parseCircle, ['0', 0, '1km'], 'must begin with [longitude, latitude]'],
    ['near', parseCircle, [0, 0, '-1km'], 'with the unit m, km or mi'],
    ['near', parseCircle, [0, 0, '1'], 'with the unit m, km or mi'],
    ['near', parseCircle, [0, 0, 1], 'with the unit m, km or mi'],
    ['near', parseCircle, [0, 0, '1 km'], 'with the unit m, km or mi'],
    ['near', parseCircle, [0, 0, '1ly'], 'with the unit m, km or mi'],
    ['near', parseCircle, [0, 0, '1e3m'], 'with the unit m, km or mi'],
    ['near', parseCircle, [0, 0, '20017km'], 'must be at most 20016km'],
    ['near', parseCircle, [0, 0, '999999999mi'], 'must be at most 20016km'],
    ['within', parseWithin, [], 'must be [[west, south], [east, north]]'],
    ['within', parseWithin, [[0, 0]], 'must be [[west, south], [east, north]]'],
    ['within', parseWithin, 'all', 'must be [[west, south], [east, north]]'],
    [
      'within',
      parseWithin,
      [
        [0, 0],
        [10, 91],
      ],
      'the corners of a box must be [longitude, latitude]',
    ],
    [
      'within',
      parseWithin,
      [
        [170, 0],
        [-170, 10],
      ],
      'date line',
    ],
    [
      'within',
      parseWithin,
      [
        [0, 10],
        [10, 0],
      ],
      'the south of the box is north of its north',
    ],
    ['within', parseWithin, [...triangle, [0, 100]], 'point 4 must be [longitude, latitude]'],
    [
      'within',
      parseWithin,
      [
        [0, 0],
        [10, 0],
        [0, 0],
      ],
      'at least three different points',
    ],
    [
      'within',
      parseWithin,
      [
        [0, 0],
        [10, 0],
        [20, 0],
      ],
      'must not touch or cross',
    ],
    [
      'within',
      parseWithin,
      [
        [0, 0],
        [10, 10],
        [10, 0],
        [0, 10],
      ],
      'must not touch or cross',
    ],
    [
      'within',
      parseWithin,
      [
        [0, 0],
        [10, 0],
        [5, 0],
        [5, 10],
      ],
      'must not touch or cross',
    ],
    [
      'within',
      parseWithin,
      [
        [0, 0],
        [5, 5],
        [10, 0],
        [10, 10],
        [5, 5],
        [0, 10],
      ],
      'must not touch or cross',
    ],
    [
      'within',
      parseWithin,
      [
        [170, 0],
        [-170, 0],
        [-170, 10],
        [170, 10],
      ],
      'crosses the date line',
    ],
    ['within', parseWithin, many, 'at most 100 points'],
  ])('[DB-GEO-9] %s %#', (_, parse, value, message) => {
    let caught: unknown
    try {
      parse(value)
    } catch (error) {
      caught = error
    }
    expect(caught).toBeInstanceOf(AreaError)
    expect((caught as AreaError).message).toContain(message)
  })
})
