/** The paged list of events. */
import { mapInSlices } from '../../base/concurrency/slices.ts'
import { formatDatetime } from '../../base/text/datetime.ts'
import { sql } from '../../engines/sql/sql-text.ts'
import { fitItems, itemBytesMax } from '../../http/replies/large-responses.ts'
import { createListCursors } from '../../http/replies/list-cursor.ts'
import { type EventFilter, matching } from './event-filter.ts'
import type { Store } from './migrations.ts'
import { msOfId, rangeStart } from './time.ts'

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

/** Newest first. Throws 400 for a cursor of another list. */
export type ListEvents = (
  filter: EventFilter,
  page: { readonly limit: number; readonly cursor: string | null },
) => Promise<EventPage>

interface EventRow {
  readonly id: string
  readonly name: string
  readonly user_id: string | null
  readonly properties: string
}

/** The end of a page: the first minute of its range and the id of its last event. */
type Position = readonly [start: number, id: string]

export function createEventList({
  store: { database, events },
  secret,
  responseBytes,
  now,
}: {
  readonly store: Store
  /** Seals cursors. */
  readonly secret: string
  readonly responseBytes: () => number
  readonly now: () => number
}): ListEvents {
  const cursors = createListCursors<Position>(secret, 'analytics events')
  const listOf = ({ event, userId, range }: EventFilter) => [event, userId, range]

  return async (filter, { limit, cursor }) => {
    const [start, lastId] = cursor === null ? [rangeStart(filter.range, now())] : cursors.parse(listOf(filter), cursor)
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
  }
}
