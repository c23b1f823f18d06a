/** Reports on requests, computed from their counts alone. */

import { mapInSlices } from '../../base/concurrency/slices.ts'
import { formatDatetime } from '../../base/text/datetime.ts'
import type { Store } from './migrations.ts'
import {
  allRequests,
  categorySeries,
  countUsers,
  endpointSeries,
  type Point,
  pointsMax,
  type Ranked,
  rankSeries,
  readPoints,
  readTotal,
  type Total,
} from './series.ts'
import { msOfMinute, type Range, rangeStart, type Unit } from './time.ts'

export const requestMetrics = ['overview', 'timeSeries', 'breakdown', 'topEndpoints'] as const
export type RequestMetric = (typeof requestMetrics)[number]

/** Categories of requests, by part of the API. `other` has requests that matched no endpoint. */
export const requestCategories = [
  'db',
  'storage',
  'auth',
  'rooms',
  'kv',
  'sql',
  'vector',
  'push',
  'analytics',
  'system',
  'other',
] as const
export type RequestCategory = (typeof requestCategories)[number]

/** The category of an endpoint's path. */
export function categoryOfPath(path: string): RequestCategory {
  const [, api, part = ''] = path.split('/')
  if (api !== 'api') return 'system'
  if (part === 'room') return 'rooms'
  return requestCategories.find((category) => category === part) ?? 'system'
}

export interface RequestReport {
  readonly summary: {
    readonly totalRequests: number
    readonly totalErrors: number
    readonly avgLatency: number
    readonly uniqueUsers: number
  }
  readonly timeSeries: readonly {
    readonly timestamp: string
    readonly requests: number
    readonly errors: number
    readonly avgLatency: number
    readonly uniqueUsers: number
  }[]
  readonly breakdown: readonly { readonly label: string; readonly count: number; readonly percentage: number }[]
  readonly topItems: readonly {
    readonly label: string
    readonly count: number
    readonly avgLatency: number
    readonly errorRate: number
  }[]
}

export interface RequestReportQuery {
  readonly metric: RequestMetric
  readonly range: Range
  readonly unit: Unit
  readonly category: RequestCategory | null
  /** Largest number of listed endpoints. */
  readonly limit: number
}

export type ReportRequests = (question: RequestReportQuery) => Promise<RequestReport>

/** Upper bound of categories, or of endpoints in one. */
const partsMax = 1000

const rounded = (value: number, digits: number): number => Number(value.toFixed(digits))
/** Milliseconds. */
const latencyOf = ({ count, durationUs }: Total): number => (count === 0 ? 0 : rounded(durationUs / count / 1000, 3))
const labelOf = ({ series }: Ranked): string => series.slice(series.lastIndexOf(':') + 1)

const showPoint = (point: Point) => ({
  timestamp: formatDatetime(msOfMinute(point.minute)),
  requests: point.count,
  errors: point.errors,
  avgLatency: latencyOf(point),
  uniqueUsers: point.users,
})

const showItem = (item: Ranked) => ({
  label: labelOf(item),
  count: item.count,
  avgLatency: latencyOf(item),
  errorRate: rounded(item.errors / item.count, 4),
})

/** A report has all members; those that were not requested are empty. */
export function createRequestReports({
  store,
  responseBytes,
  now,
}: {
  store: Store
  responseBytes: () => number
  now: () => number
}): ReportRequests {
  return async ({ metric, range, unit, category, limit }) => {
    const start = rangeStart(range, now())
    const series = category === null ? allRequests : categorySeries(category)
    const endpoints = category === null ? 'endpoint:' : endpointSeries(category, '')
    const isRequested = (part: RequestMetric): boolean => metric === 'overview' || metric === part
    const nothing = Promise.resolve([])
    const [total, users, points, parts, top] = await Promise.all([
      readTotal(store, series, start),
      countUsers(store, series, start),
      isRequested('timeSeries') ? readPoints(store, series, start, unit, pointsMax(responseBytes())) : nothing,
      isRequested('breakdown')
        ? rankSeries(store, category === null ? categorySeries('') : endpoints, start, partsMax)
        : nothing,
      isRequested('topEndpoints') ? rankSeries(store, endpoints, start, limit) : nothing,
    ])
    // The sum of the parts as they were read; the total may be older by a request.
    const partsTotal = parts.reduce((sum, { count }) => sum + count, 0)
    return {
      summary: {
        totalRequests: total.count,
        totalErrors: total.errors,
        avgLatency: latencyOf(total),
        uniqueUsers: users,
      },
      timeSeries: await mapInSlices(points, showPoint),
      breakdown: parts.map((part) => ({
        label: labelOf(part),
        count: part.count,
        percentage: rounded((100 * part.count) / partsTotal, 2),
      })),
      topItems: top.map(showItem),
    }
  }
}
