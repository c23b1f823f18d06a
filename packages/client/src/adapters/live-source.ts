/** What the adapters of user interface libraries share: live results by key, and their state before the first one. */
import type { Untyped } from '../types/config-shape.ts'
import type { LiveListState, LiveRecordState } from '../types/live.ts'
import type { Query, Table } from '../types/records.ts'
import type { Room } from '../types/rooms.ts'

/** The state of a list that is not read yet, or not at all. */
export const emptyList: LiveListState<never> = {
  items: [],
  status: 'loading',
  pending: 0,
}

/** The state of a record that is not read yet, or not at all. */
export const emptyRecord: LiveRecordState<never> = { record: null, status: 'loading' }

/** What a room shows that is not joined, or of which there is none. */
export const emptyRoom = {
  status: 'closed' as Room['status'],
  shared: {} as Untyped,
  player: {} as Untyped,
  members: emptyList.items as readonly object[],
}

interface QueryInternals {
  readonly source: { readonly channel: string; readonly core: { readonly url: string } }
  readonly parts: unknown
}

/** Identifies the client of a query: another client of the same server may have another user. */
export const coreOf = <Row>(query: Query<Row> | null): object | undefined =>
  (query as unknown as QueryInternals | null)?.source.core

/** Identifies what a query reads: equal queries of one server have equal keys. */
export function keyOf<Row>(query: Query<Row>): readonly unknown[] {
  const { source, parts } = query as unknown as QueryInternals
  return ['plinth', source.core.url, source.channel, parts]
}

export const textKeyOf = <Row>(query: Query<Row> | null): string => (query ? JSON.stringify(keyOf(query)) : '')

/** The key of one record of a table. */
export const recordKeyOf = <Row>(table: Table<Row>, id: string | null): string =>
  id === null ? '' : JSON.stringify([...keyOf(table), id])

/** Whether there is no page: on servers nothing is subscribed, and states are those before the first result. */
export const isOnServer = (): boolean => typeof window === 'undefined'

/** Calls the listener when anything of a room changes. */
export function watchRoom(room: Room, listener: () => void): () => void {
  const stops = [room, room.shared, room.player, room.members].map((part) => part.subscribe(listener))
  return () => {
    for (const stop of stops) stop()
  }
}

/** What a room shows. */
export const readRoom = (room: Room): typeof emptyRoom => ({
  status: room.status,
  shared: room.shared.current,
  player: room.player.current,
  members: room.members.current,
})

/** Joins a room and calls the listener when anything of it changes. Returns the function that releases it. */
export function followRoom(room: Room, listener: () => void): () => void {
  const stop = watchRoom(room, listener)
  const release = room.retain()
  return () => {
    stop()
    release()
  }
}
