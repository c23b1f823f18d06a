/** Reports on events: the paged list, and statistics from their counts. */
import { mapInSlices } from '../../base/concurrency/slices.ts'
import { formatDatetime } from '../../base/text/datetime.ts'
import { type SqlText, sql } from '../../engines/sql/sql-text.ts'
import { fitItems, itemBytesMax } from '../../http/replies/large-responses.ts'
import { createListCursors } from '../../http/replies/list-cursor.ts'
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
import { idBound, msOfId, msOfMinute, type Range, rangeStart, type Unit, unitMinutes } from './time.ts'

/** Selects the events of a report. */
export interface EventFilter {
  readonly event: string | null
  readonly userId: string | null
  readonly range: Range
}

export interface ListedEvent {
  readonly id: string
  readonly timestamp: string
  readonly userId: string | null
  readonly eventName: string
  readonly properties: unknown
}

export interface EventPage {
  readonly events: readonly ListedEvent[]
  readonly cursor: string | null
  readonly hasMore: boolean
  /** Present if the page was truncated to fit into the response. */
  readonly truncated?: true
}

export interface EventReports {
  /** Newest first. Throws 400 for a cursor of another list. */
  list(filter: EventFilter, page: { readonly limit: number; readonly cursor: string | null }): Promise<EventPage>
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

interface EventRow {
  readonly id: string
  readonly name: string
  readonly user_id: string | null
  readonly properties: string
}

/** The end of a page: the first minute of its range and the id of its last event. */
type Position = readonly [start: number, id: string]

const namePrefix = eventSeries('')

export function createEventReports({
  store,
  secret,
  responseBytes,
  now,
}: {
  readonly store: Store
  /** Seals cursors. */
  readonly secret: string
  readonly responseBytes: () => number
  readonly now: () => number
}): EventReports {
  const { database, events } = store
  const cursors = createListCursors<Position>(secret, 'analytics events')
  const listOf = ({ event, userId, range }: EventFilter) => [event, userId, range]

  /**
   * Selects the events of a filter from a minute on. With a user, that user's index must be used even if the name is
   * rare: the expression in place of the column hides the other index from the planner.
   */
  function matching({ event, userId }: EventFilter, start: number): SqlText {
    const name = event === null ? sql`` : userId === null ? sql` AND name = ${event}` : sql` AND name || '' = ${event}`
    const user = userId === null ? sql`` : sql` AND user_id = ${userId}`
    return sql`id >= ${idBound(msOfMinute(start))}${name}${user}`
  }

  /** Counts the events of one user individually; a single user has few. */
  async function countGrouped(filter: EventFilter, start: number, by: SqlText): Promise<readonly GroupRow[]> {
    return database.all<GroupRow>(
      sql`SELECT ${by} AS grouped, count(*) AS n FROM ${events} WHERE ${matching(filter, start)} GROUP BY ${by}
        ORDER BY ${by}`,
    )
  }

  async function pointsOfUser(filter: EventFilter, start: number, unit: Unit): Promise<[number, number][]> {
    const length = unitMinutes[unit]
    const rows = await countGrouped(filter, start, { text: `minute / ${length}`, values: [] })
    return rows.map(({ grouped, n }) => [Number(grouped) * length, Number(n)])
  }

  async function namesOfUser(filter: EventFilter, start: number): Promise<[string, number][]> {
    const rows = await countGrouped(filter, start, sql`name`)
    return rows.map(({ grouped, n }): [string, number] => [String(grouped), Number(n)]).sort(([, a], [, b]) => b - a)
  }

  async function rank(filter: EventFilter, start: number, limit: number): Promise<TopEvent[]> {
    const { event, userId } = filter
    if (userId !== null) {
      const names = await namesOfUser(filter, start)
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

  return {
    async list(filter, { limit, cursor }) {
      const [start, lastId] =
        cursor === null ? [rangeStart(filter.range, now())] : cursors.parse(listOf(filter), cursor)
      const before = lastId === undefined ? sql`` : sql` AND id < ${lastId}`
      const rows = await database.all<EventRow>(
        sql`SELECT id, name, user_id, properties FROM ${events} WHERE ${matching(filter, start)}${before}
          ORDER BY id DESC LIMIT ${limit + 1}`,
      )
      const listed = await mapInSlices(rows.slice(0, limit), ({ id, name, user_id, properties }) => ({
        id,
        timestamp: formatDatetime(msOfId(id)),
        userId: user_id,
        eventName: name,
        properties: JSON.parse(properties),
      }))
      const { items: shown, isCut } = await fitItems(listed, itemBytesMax(responseBytes()))
      const last = rows.length > shown.length ? shown.at(-1) : undefined
      return {
        events: shown,
        ...(isCut ? { truncated: true } : {}),
        cursor: last ? cursors.format(listOf(filter), [start, last.id]) : null,
        hasMore: last !== undefined,
      }
    },

    async count(filter) {
      const start = rangeStart(filter.range, now())
      if (filter.userId !== null) {
        const totalEvents = (await namesOfUser(filter, start)).reduce((sum, [, n]) => sum + n, 0)
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
          : withinPoints(await pointsOfUser(filter, start, unit), pointsMax(responseBytes()))
      return {
        timeSeries: points.map(([minute, count]) => ({ timestamp: formatDatetime(msOfMinute(minute)), count })),
      }
    },

    async topEvents(filter, limit) {
      const ranked = await rank(filter, rangeStart(filter.range, now()), limit)
      const { items: topEvents, isCut } = await fitItems(ranked, itemBytesMax(responseBytes()))
      return isCut ? { topEvents, truncated: true } : { topEvents }
    },
  }
}
