/** The range of a report, and its series without gaps. */
import type { UrlState } from '../../app/url-state.ts'
import type { Bar } from '../../design/chart/bar-chart.tsx'
import { withoutGaps } from '../../design/chart/intervals.ts'
import { Select } from '../../design/select.tsx'
import { type Range, ranges } from './requests.ts'

const labels: Readonly<Record<Range, string>> = {
  '1h': 'Last hour',
  '24h': 'Last 24 hours',
  '7d': 'Last 7 days',
  '30d': 'Last 30 days',
  '90d': 'Last 90 days',
}
const options = ranges.map((range) => ({ value: range, label: labels[range] }))

export const rangeOf = (url: UrlState): Range => ranges.find((range) => range === url.get('range')) ?? '24h'

export const RangeSelect = ({ url }: { readonly url: UrlState }) => (
  <Select
    className="insights-range"
    label="Range"
    value={rangeOf(url)}
    options={options}
    onChange={(range) => url.set({ range }, { replace: true })}
  />
)

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

/** Length of a range, and of the intervals that the server counts in. */
const lengths: Readonly<Record<Range, readonly [rangeMs: number, stepMs: number]>> = {
  '1h': [hourMs, minuteMs],
  '24h': [dayMs, hourMs],
  '7d': [7 * dayMs, hourMs],
  '30d': [30 * dayMs, dayMs],
  '90d': [90 * dayMs, dayMs],
}

/** The bars of a range that ends now. The server leaves out intervals without a count. */
export const barsOf = (range: Range, points: readonly Bar[]): Bar[] =>
  withoutGaps(points, ...lengths[range], Date.now())

export const formatTimeOf =
  (range: Range) =>
  (atMs: number): string => {
    const date = new Date(atMs)
    const day = date.toLocaleDateString('en', { month: 'short', day: 'numeric' })
    if (range === '30d' || range === '90d') return day
    return `${day}, ${date.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })}`
  }
