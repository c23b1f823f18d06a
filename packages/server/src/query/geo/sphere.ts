/**
 * Places on a sphere, as unit vectors: distances between them are compared as squared chords, which take additions and
 * multiplications only and so have the same bits in JavaScript and on every SQL engine. Pure.
 */

/** A place as records hold it. */
export type LonLat = readonly [longitude: number, latitude: number]

/** A place as a point of the unit sphere. */
export interface Vector {
  readonly x: number
  readonly y: number
  readonly z: number
}

/** The mean radius of the Earth (IUGG), in meters. */
const earthRadiusM = 6_371_008.8

const radiansPerDegree = Math.PI / 180

export const radiansOf = (degrees: number): number => degrees * radiansPerDegree

/** Taylor coefficients, which are exact to the last bits up to 45 degrees: n! for odd and even n. */
const sineTerms = [
  1,
  -1 / 6,
  1 / 120,
  -1 / 5040,
  1 / 362_880,
  -1 / 39_916_800,
  1 / 6_227_020_800,
  -1 / 1_307_674_368_000,
]
const cosineTerms = [1, -1 / 2, 1 / 24, -1 / 720, 1 / 40_320, -1 / 3_628_800, 1 / 479_001_600, -1 / 87_178_291_200]

/** The polynomial of the square of `x`, lowest term first. */
function polynomial(terms: readonly number[], x: number): number {
  const square = x * x
  let sum = 0
  for (let at = terms.length - 1; at >= 0; at--) sum = sum * square + (terms[at] as number)
  return sum
}

/**
 * Sine and cosine of an angle in degrees. Unlike those of the runtime they are the same on every machine, so that
 * stored vectors stay equal to computed ones, and exact at multiples of 90 degrees, so that a pole is one point.
 */
function sineAndCosine(degrees: number): readonly [sine: number, cosine: number] {
  const quarter = Math.round(degrees / 90)
  const rest = (degrees - quarter * 90) * radiansPerDegree
  const sine = rest * polynomial(sineTerms, rest)
  const cosine = polynomial(cosineTerms, rest)
  switch (((quarter % 4) + 4) % 4) {
    case 0:
      return [sine, cosine]
    case 1:
      return [cosine, -sine]
    case 2:
      return [-sine, -cosine]
    default:
      return [-cosine, sine]
  }
}

/** Products of smaller numbers are out of range on PostgreSQL; no atom is as wide. */
const least = 1e-100

/** Without the sign of zero, which differs between engines. */
const flushed = (value: number): number => (Math.abs(value) < least ? 0 : value)

export function vectorOf([longitude, latitude]: LonLat): Vector {
  const [sine, cosine] = sineAndCosine(longitude)
  const [z, scale] = sineAndCosine(latitude)
  return { x: flushed(scale * cosine), y: flushed(scale * sine), z: flushed(z) }
}

/** The squared length of the chord between two places: 0 to 4. The order of operations is that of `chordSquaredSql`. */
export function chordSquared(a: Vector, b: Vector): number {
  const [x, y, z] = [a.x - b.x, a.y - b.y, a.z - b.z]
  return x * x + y * y + z * z
}

/** More than any squared chord, in spite of rounding. */
export const beyondAllChords = 5

/** The squared chord of a great-circle distance in meters; `beyondAllChords` for half the circumference and more. */
export function chordSquaredOf(meters: number): number {
  const half = meters / (2 * earthRadiusM)
  if (half >= Math.PI / 2) return beyondAllChords
  const chord = 2 * Math.sin(half)
  return chord * chord
}

/** The distance of a squared chord in meters, to the millimeter. */
export const metersOf = (squared: number): number =>
  Math.round(2 * earthRadiusM * Math.asin(Math.min(1, Math.sqrt(squared) / 2)) * 1000) / 1000

/** Whether a JSON value is a place. */
export const isLonLat = (value: unknown): value is LonLat =>
  Array.isArray(value) &&
  value.length === 2 &&
  value.every((part) => typeof part === 'number') &&
  Math.abs(value[0] as number) <= 180 &&
  Math.abs(value[1] as number) <= 90

/** A place as it is stored and compared; null for any other JSON value. */
export const findLocation = (value: unknown): LonLat | null =>
  isLonLat(value) ? [flushed(value[0]), flushed(value[1])] : null

/** What `findLocation` takes, for messages. */
export const locationShape = '[longitude, latitude], from -180 to 180 and from -90 to 90'
