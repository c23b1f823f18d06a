/**
 * The first records by distance: the nearest are searched in a small circle first, since sorting all places of a large
 * one would read them all. A page that a circle fills is the same as that of the whole area, because every place
 * outside the circle is farther than every place inside.
 */

import { allOf, type Expr } from '../../../query/expr.ts'
import { type Circle, circleAround } from '../../../query/geo/area.ts'
import { metresOf } from '../../../query/geo/sphere.ts'
import type { Sort, SortValue } from '../../../query/sort.ts'
import type { Table } from '../../../query/table.ts'

/** The first circle has the places of a town, each next one 25 times the area. */
const firstMetres = 2000
const growth = 5

/** The condition with the circle in place of the wider one that it has been sorted by. */
function narrowed(condition: Expr, wider: Circle, circle: Expr): Expr {
  const parts = condition.kind === 'and' ? condition.of : [condition]
  const isWider = (part: Expr): boolean => part.kind === 'geo' && part.area === wider
  return parts.some(isWider) ? allOf(parts.map((part) => (isWider(part) ? circle : part))) : allOf([condition, circle])
}

/**
 * Conditions to try in turn until one of them fills the page; the last is `condition`. `position` is that of a cursor,
 * whose distance the first circle exceeds.
 */
export function nearestFirst(
  { fields }: Table,
  condition: Expr,
  sort: Sort,
  position: readonly SortValue[] | null,
): readonly Expr[] {
  const [first] = sort
  if (!first?.from || first.descending || !fields.get(first.field)?.index) return [condition]
  const { circle } = first.from
  const { center, most } = circle
  const [start] = position ?? []
  const conditions: Expr[] = []
  let metres = Math.max(firstMetres, typeof start === 'number' ? metresOf(start) * 2 : 0)
  for (let area = circleAround(center, metres); area.most < most; area = circleAround(center, metres)) {
    conditions.push(narrowed(condition, circle, { kind: 'geo', field: first.field, area }))
    metres *= growth
  }
  return [...conditions, condition]
}
