/** Places on a sphere, written independently of the server: what property tests compare its answers with. */

export type LonLat = readonly [longitude: number, latitude: number]

export const isLocation = (value: unknown): value is LonLat => Array.isArray(value) && value.length === 2

const radiusM = 6_371_008.8
const radians = (degrees: number): number => (degrees * Math.PI) / 180

/** The length of a great circle, by the formula that is exact at all distances. */
export function metersBetween([lon1, lat1]: LonLat, [lon2, lat2]: LonLat): number {
  const [a, b, turn] = [radians(lat1), radians(lat2), radians(lon2 - lon1)]
  const across = Math.cos(b) * Math.sin(turn)
  const along = Math.cos(a) * Math.sin(b) - Math.sin(a) * Math.cos(b) * Math.cos(turn)
  const inward = Math.sin(a) * Math.sin(b) + Math.cos(a) * Math.cos(b) * Math.cos(turn)
  return radiusM * Math.atan2(Math.hypot(across, along), inward)
}

/** Meters in a text such as `5km`. */
const metersIn = (text: string): number => Number.parseFloat(text) * (text.endsWith('km') ? 1000 : 1)

/** More than rounding, and less than the distance between any two places of a test. */
const slackM = 1e-6

export const isNear = (place: unknown, [lon, lat, distance]: readonly [number, number, string]): boolean =>
  isLocation(place) && metersBetween(place, [lon, lat]) <= metersIn(distance) + slackM

/** In a box of two corners with its edges, or in a polygon, on whose sides no place may be. */
export function isWithin(place: unknown, corners: readonly LonLat[]): boolean {
  if (!isLocation(place)) return false
  const [x, y] = place
  if (corners.length === 2) {
    const [[west, south], [east, north]] = corners as readonly [LonLat, LonLat]
    return x >= west && x <= east && y >= south && y <= north
  }
  return (
    corners.filter(([x1, y1], at) => {
      const [x2, y2] = corners[(at + 1) % corners.length] as LonLat
      return y1 > y !== y2 > y && x < x1 + ((y - y1) * (x2 - x1)) / (y2 - y1)
    }).length %
      2 ===
    1
  )
}
