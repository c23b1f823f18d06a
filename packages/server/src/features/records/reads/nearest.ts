/**
 * The first records by distance: the nearest are searched in a small circle first, since sorting all places of a large
 * one would read them all. A page that a circle fills is the same as that of the whole area, because every place
 * outside the circle is farther than every place inside.
 */

import type { PageRows } from '../../../engines/sql/page-query.ts'
import { allOf, type Expr } from '../../../query/expr.ts'
import { type Circle, circleAround } from '../../../query/geo/area.ts'
import { metersOf } from '../../../query/geo/sphere.ts'
import type { Sort, SortValue } from '../../../query/sort.ts'
import type { Table } from '../../../query/table.ts'

/** The first circle has the places of a town. */
const firstMeters = 2000
/** How much wider a circle at most is than the one before. */
const growthMost = 8
/** A circle that is not this many times narrower than the whole area would save less than a second query costs. */
const narrowerLeast = 2.5

/** How much wider the next circle is than one with `found` of `limit` places, if they are spread evenly, and some. */
const growthAfter = (found: number, limit: number): number => Math.min(growthMost, 1.5 * Math.sqrt(limit / found))

/** The condition with the circle in place of the wider one that it has been sorted by. */
function narrowed(condition: Expr, wider: Circle, circle: Expr): Expr {
  const parts = condition.kind === 'and' ? condition.of : [condition]
  const isWider = (part: Expr): boolean => part.kind === 'geo' && part.area === wider
  return parts.some(isWider) ? allOf(parts.map((part) => (isWider(part) ? circle : part))) : allOf([condition, circle])
}

/** What is read in the order of `sort`. `position` is that of a cursor, whose distance the first circle exceeds. */
export interface Nearest {
  readonly table: Table
  readonly condition: Expr
  readonly sort: Sort
  readonly position: readonly SortValue[] | null
  readonly limit: number
}

type NearestPage = Pick<PageRows<unknown>, 'rows' | 'isCut'>

/** The page of a list, with as much of it as a response takes; null if `read` returned null. */
export function readNearest<Page extends NearestPage>(
  nearest: Nearest,
  read: (condition: Expr) => Promise<Page | null>,
): Promise<Page | null> {
  const [first] = nearest.sort
  if (!first?.from || first.descending || !nearest.table.fields.get(first.field)?.index) return read(nearest.condition)
  return readInCircles(nearest, first.field, first.from.circle, read)
}

async function readInCircles<Page extends NearestPage>(
  { condition, position, limit }: Nearest,
  field: string,
  circle: Circle,
  read: (condition: Expr) => Promise<Page | null>,
): Promise<Page | null> {
  const { center, most } = circle
  const [start] = position ?? []
  let meters = Math.max(firstMeters, typeof start === 'number' ? metersOf(start) * 2 : 0)
  while (circleAround(center, meters * narrowerLeast).most < most) {
    const area = circleAround(center, meters)
    const page = await read(narrowed(condition, circle, { kind: 'geo', field, area }))
    if (!page || page.isCut || page.rows.length >= limit) return page
    meters *= growthAfter(page.rows.length, limit)
  }
  return read(condition)
}
