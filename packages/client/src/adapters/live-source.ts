/** What the adapters of user interface libraries share: live results by key, and their state before the first one. */
import type { LiveListState, LiveRecordState } from '../types/live.ts'
import type { Query, Table } from '../types/records.ts'
import type { Room } from '../types/rooms.ts'

/** The state of a list that is not read yet, or not at all. */
export const emptyList: LiveListState<never> = Object.freeze({
  items: Object.freeze([]) as readonly never[],
  status: 'loading',
  pending: 0,
})

/** The state of a record that is not read yet, or not at all. */
export const emptyRecord: LiveRecordState<never> = Object.freeze({ record: null, status: 'loading' })

interface QueryInternals {
  readonly source: { readonly channel: string; readonly core: { readonly url: string } }
  readonly parts: unknown
}

/** Identifies what a query reads: equal queries of one server have equal keys. */
export function keyOf<Row>(query: Query<Row>): readonly unknown[] {
  const { source, parts } = query as unknown as QueryInternals
  return ['plinth', source.core.url, source.channel, parts]
}

export const textKeyOf = <Row>(query: Query<Row> | null): string => (query ? JSON.stringify(keyOf(query)) : '')

/** The key of one record of a table. */
export const recordKeyOf = <Row>(table: Table<Row>, id: string | null): string =>
  id === null ? '' : JSON.stringify([...keyOf(table), id])

/** How long a room without users stays joined, in milliseconds: components unmount and mount again. */
const roomLingerMs = 1_000
const roomUsers = new WeakMap<Room, number>()

/** Joins a room for a component. Returns the function that releases it; the last release disconnects. */
export function enterRoom(room: Room): () => void {
  const change = (by: number): number => {
    const users = (roomUsers.get(room) ?? 0) + by
    roomUsers.set(room, users)
    return users
  }
  change(1)
  // A refusal is visible in the room's status.
  room.join().catch(() => undefined)
  let isReleased = false
  return () => {
    if (isReleased) return
    isReleased = true
    if (change(-1) === 0)
      setTimeout(() => {
        if (roomUsers.get(room) === 0) room.disconnect()
      }, roomLingerMs)
  }
}

/** Calls the listener when anything of a room changes. */
export function watchRoom(room: Room, listener: () => void): () => void {
  const stops = [room, room.shared, room.player, room.members].map((part) => part.subscribe(listener))
  return () => {
    for (const stop of stops) stop()
  }
}
