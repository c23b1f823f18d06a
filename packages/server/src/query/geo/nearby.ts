/** The centers of the conditions `near` of a request, by which its records are sorted and measured. */
import type { Expr } from '../expr.ts'
import type { Row } from '../matches.ts'
import type { Circle } from './area.ts'
import { chordSquared, isLonLat, metersOf, vectorOf } from './sphere.ts'

/** By geo field, in the order of the request. */
export type Nearby = ReadonlyMap<string, Circle>

export const nowhere: Nearby = new Map()

/** Of each field the first `near` of a request's own conditions; not those on related records. */
export function nearbyOf(conditions: readonly Expr[]): Nearby {
  let found: Map<string, Circle> | null = null
  for (const expr of conditions) {
    if (expr.kind !== 'geo' || expr.area.kind !== 'circle') continue
    found ??= new Map()
    if (!found.has(expr.field)) found.set(expr.field, expr.area)
  }
  return found ?? nowhere
}

/** The distance of each field's place from its center in meters; null without a place. */
export function distancesOf(record: Row, nearby: Nearby): Record<string, number | null> {
  const distances: Record<string, number | null> = {}
  for (const [field, { vector }] of nearby) {
    const location = record[field]
    distances[field] = isLonLat(location) ? metersOf(chordSquared(vectorOf(location), vector)) : null
  }
  return distances
}
