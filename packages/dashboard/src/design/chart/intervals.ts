/** Series of counts without gaps. */
import type { Bar } from './bar-chart.tsx'

/** The bars of the intervals of a range that ends now. Intervals that are missing have a count of 0. */
export function withoutGaps(points: readonly Bar[], rangeMs: number, stepMs: number, nowMs: number): Bar[] {
  const known = new Map(points.map((point) => [Math.floor(point.atMs / stepMs), point]))
  const last = Math.floor(nowMs / stepMs)
  const count = Math.round(rangeMs / stepMs)
  return Array.from({ length: count }, (_, at) => {
    const interval = last - count + 1 + at
    return known.get(interval) ?? { atMs: interval * stepMs, count: 0 }
  })
}
