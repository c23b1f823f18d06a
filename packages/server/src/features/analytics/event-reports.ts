/** Statistics of events, from their counts; those of a single user are counted from the events. */
import { formatDatetime } from '../../base/text/datetime.ts'
import { type SqlText, sql } from '../../engines/sql/sql-text.ts'
import { fitItems, itemBytesMax } from '../../http/replies/large-responses.ts'
import { type EventFilter, matching } from './event-filter.ts'
import type { Store } from './migrations.ts'
import {
  allEvents,
  countUsers,
  countUsersOf,
  eventSeries,
  pointsMax,
  rankSeries,
  readPoints,
  readTotal,
  withinPoints,
} from './series.ts'
import { msOfMinute, rangeStart, type Unit, unitMinutes } from './time.ts'

export interface EventReports {
  count(filter: EventFilter): Promise<{ totalEvents: number; uniqueUsers: number }>
  timeSeries(filter: EventFilter, unit: Unit): Promise<{ timeSeries: { timestamp: string; count: number }[] }>
  /** Most frequent first. */
  topEvents(filter: EventFilter, limit: number): Promise<{ topEvents: readonly TopEvent[]; truncated?: true }>
}

interface TopEvent {
  readonly eventName: string
  readonly count: number
  readonly uniqueUsers: number
}

interface GroupRow {
  readonly grouped: unknown
  readonly n: unknown
}

const namePrefix = eventSeries('')

/** Counts the events of one user individually; a single user has few. */
async function countGrouped(
  { database, events }: Store,
  filter: EventFilter,
  start: number,
  by: SqlText,
): Promise<readonly GroupRow[]> {
  return database.all<GroupRow>(
    sql`SELECT ${by} AS grouped, count(*) AS n FROM ${events} WHERE ${matching(filter, start)} GROUP BY ${by}
      ORDER BY ${by}`,
  )
}

async function pointsOfUser(store: Store, filter: EventFilter, start: number, unit: Unit): Promise<[number, number][]> {
  const length = unitMinutes[unit]
  const rows = await countGrouped(store, filter, start, { text: `minute / ${length}`, values: [] })
  return rows.map(({ grouped, n }) => [Number(grouped) * length, Number(n)])
}

async function namesOfUser(store: Store, filter: EventFilter, start: number): Promise<[string, number][]> {
  const rows = await countGrouped(store, filter, start, sql`name`)
  return rows.map(({ grouped, n }): [string, number] => [String(grouped), Number(n)]).sort(([, a], [, b]) => b - a)
}

async function rank(store: Store, filter: EventFilter, start: number, limit: number): Promise<TopEvent[]> {
  const { event, userId } = filter
  if (userId !== null) {
    const names = await namesOfUser(store, filter, start)
    return names.slice(0, limit).map(([eventName, count]) => ({ eventName, count, uniqueUsers: 1 }))
  }
  if (event !== null) {
    const { count } = await readTotal(store, eventSeries(event), start)
    const uniqueUsers = await countUsers(store, eventSeries(event), start)
    return count > 0 ? [{ eventName: event, count, uniqueUsers }] : []
  }
  const ranked = await rankSeries(store, namePrefix, start, limit)
  const names = ranked.map(({ series }) => series)
  const users = await countUsersOf(store, names, start)
  return ranked.map(({ series, count }) => ({
    eventName: series.slice(namePrefix.length),
    count,
    uniqueUsers: users.get(series) ?? 0,
  }))
}

export function createEventReports({
  store,
  responseBytes,
  now,
}: {
  readonly store: Store
  readonly responseBytes: () => number
  readonly now: () => number
}): EventReports {
  return {
    async count(filter) {
      const start = rangeStart(filter.range, now())
      if (filter.userId !== null) {
        const totalEvents = (await namesOfUser(store, filter, start)).reduce((sum, [, n]) => sum + n, 0)
        return { totalEvents, uniqueUsers: totalEvents > 0 ? 1 : 0 }
      }
      const series = filter.event === null ? allEvents : eventSeries(filter.event)
      const [{ count }, uniqueUsers] = await Promise.all([
        readTotal(store, series, start),
        countUsers(store, series, start),
      ])
      return { totalEvents: count, uniqueUsers }
    },

    async timeSeries(filter, unit) {
      const start = rangeStart(filter.range, now())
      const series = filter.event === null ? allEvents : eventSeries(filter.event)
      const points =
        filter.userId === null
          ? (await readPoints(store, series, start, unit, pointsMax(responseBytes()))).map(
              ({ minute, count }) => [minute, count] as const,
            )
          : withinPoints(await pointsOfUser(store, filter, start, unit), pointsMax(responseBytes()))
      return {
        timeSeries: points.map(([minute, count]) => ({ timestamp: formatDatetime(msOfMinute(minute)), count })),
      }
    },

    async topEvents(filter, limit) {
      const ranked = await rank(store, filter, rangeStart(filter.range, now()), limit)
      const { items: topEvents, isCut } = await fitItems(ranked, itemBytesMax(responseBytes()))
      return isCut ? { topEvents, truncated: true } : { topEvents }
    },
  }
}
