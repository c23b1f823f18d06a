/**
 * Cells: rectangles of longitude and latitude, halved in both directions at each level and numbered along a Z-order
 * curve, so that the places of a cell are a range of numbers in an ordinary index on every engine. Pure.
 */
import { geoRangesMax } from '../../limits/api.ts'
import type { LonLat } from './sphere.ts'

/** Halvings of the finest cell, whose sides are at most 1.2 m. Two bits each fit in a double. */
const levels = 25
const side = 2 ** levels

/** A rectangle, with its edges, in degrees. */
export interface Rectangle {
  readonly west: number
  readonly south: number
  readonly east: number
  readonly north: number
}

/** Numbers from `first` to `last`. */
export interface CellRange {
  readonly first: number
  readonly last: number
}

/** How a cell relates to an area; `apart` only if they have no place in common. */
export type Overlap = 'apart' | 'inside' | 'partly'

/** The bits of a number of 25 bits, each followed by a zero. */
function spread(bits: number): number {
  let spreadBits = 0
  for (let at = levels - 1; at >= 0; at--) spreadBits = spreadBits * 4 + ((bits >> at) & 1)
  return spreadBits
}

/** The row or column of a coordinate; the last one includes its upper edge. */
const stepOf = (value: number, least: number, extent: number): number =>
  Math.min(side - 1, Math.max(0, Math.floor(((value - least) / extent) * side)))

/** The number of the finest cell with a place. */
export const cellOf = ([longitude, latitude]: LonLat): number =>
  spread(stepOf(longitude, -180, 360)) * 2 + spread(stepOf(latitude, -90, 180))

interface Cell {
  readonly first: number
  readonly column: number
  readonly row: number
  readonly level: number
}

/** Rounding may place a coordinate in the neighboring cell; a finest cell is eight orders of magnitude wider. */
const slackDegrees = 1e-11

function rectangleOf({ column, row, level }: Cell): Rectangle {
  const columns = 2 ** level
  const [width, height] = [360 / columns, 180 / columns]
  const [west, south] = [-180 + column * width, -90 + row * height]
  return {
    west: west - slackDegrees,
    south: south - slackDegrees,
    east: west + width + slackDegrees,
    north: south + height + slackDegrees,
  }
}

function quarterOf({ first, column, row, level }: Cell, at: number): Cell {
  const size = 4 ** (levels - level - 1)
  return { first: first + at * size, column: column * 2 + (at >> 1), row: row * 2 + (at & 1), level: level + 1 }
}

const rangeOf = ({ first, level }: Cell): CellRange => ({ first, last: first + 4 ** (levels - level) - 1 })

/** Cells are refined as long as there are no more of them: neighbors become one range. */
const cellsMax = geoRangesMax * 4

/**
 * Ranges with every place of an area, and some others, in ascending order: at most `geoRangesMax`. The largest cells on
 * the edge of the area are divided first.
 */
export function coverOf(overlap: (rectangle: Rectangle) => Overlap): readonly CellRange[] {
  let done: readonly Cell[] = []
  let edge: readonly Cell[] = [{ first: 0, column: 0, row: 0, level: 0 }]
  while (edge.length > 0 && (edge[0] as Cell).level < levels) {
    const finer = divide(edge, cellsMax - done.length, overlap)
    if (!finer) break
    done = [...done, ...finer.inside]
    edge = finer.edge
  }
  return fewest(joined([...done, ...edge].map(rangeOf).toSorted((a, b) => a.first - b.first)))
}

interface Divided {
  readonly inside: readonly Cell[]
  readonly edge: readonly Cell[]
}

/** The quarters of cells that an area has or crosses; null if they are more than `countMax`. */
function divide(cells: readonly Cell[], countMax: number, overlap: (rectangle: Rectangle) => Overlap): Divided | null {
  const inside: Cell[] = []
  const edge: Cell[] = []
  for (const cell of cells)
    for (let at = 0; at < 4; at++) {
      const quarter = quarterOf(cell, at)
      const found = overlap(rectangleOf(quarter))
      if (found === 'apart') continue
      const same = found === 'inside' ? inside : edge
      same.push(quarter)
      if (inside.length + edge.length > countMax) return null
    }
  return { inside, edge }
}

/** Ranges that follow one another as one. */
function joined(ranges: readonly CellRange[]): CellRange[] {
  const found: CellRange[] = []
  for (const range of ranges) {
    const last = found.at(-1)
    if (last && last.last + 1 === range.first) found[found.length - 1] = { first: last.first, last: range.last }
    else found.push(range)
  }
  return found
}

/** Closes the smallest gaps until there are at most `geoRangesMax` ranges. */
function fewest(ranges: readonly CellRange[]): readonly CellRange[] {
  const gaps = ranges.slice(1).map((range, at) => ({ at: at + 1, size: range.first - (ranges[at] as CellRange).last }))
  const open = gaps
    .toSorted((a, b) => b.size - a.size || a.at - b.at)
    .slice(0, geoRangesMax - 1)
    .map(({ at }) => at)
    .toSorted((a, b) => a - b)
  const starts = [0, ...open]
  if (ranges.length === 0) return []
  return starts.map((start, at) => ({
    first: (ranges[start] as CellRange).first,
    last: (ranges[(starts[at + 1] ?? ranges.length) - 1] as CellRange).last,
  }))
}

/** The part of all cells that is in the ranges. */
export const shareOf = (ranges: readonly CellRange[]): number =>
  ranges.reduce((sum, { first, last }) => sum + last - first + 1, 0) / 4 ** levels
