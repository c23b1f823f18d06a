/** What the adapters of user interface libraries share: live results by key, and their state before the first one. */
import { later } from '../core/later.ts'
import type { Client } from '../types/client.ts'
import type { Untyped } from '../types/config-shape.ts'
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

/** What a room shows that is not joined, or of which there is none. */
export const emptyRoom = Object.freeze({
  status: 'closed' as Room['status'],
  shared: Object.freeze({}) as Untyped,
  player: Object.freeze({}) as Untyped,
  members: emptyList.items as readonly object[],
})

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

/** How long a room without users stays joined, in milliseconds: components unmount and mount again. */
const roomLingerMs = 1_000
const roomUsers = new WeakMap<Room, number>()

/** Calls the listener when another user has signed in. */
function watchSignIn(client: Client<Untyped>, listener: () => void): () => void {
  try {
    const { auth } = client
    let id = auth.user?.id
    return auth.onChange((session) => {
      const isOther = session !== null && session.user.id !== id
      id = session?.user.id
      if (isOther) listener()
    })
  } catch {
    // Without the feature `auth` there is one user.
    return () => undefined
  }
}

/**
 * Joins a room for a component, again as each user who signs in. Returns the function that releases it; the last
 * release disconnects.
 */
export function enterRoom(client: Client<Untyped>, room: Room): () => void {
  const change = (by: number): number => {
    const users = (roomUsers.get(room) ?? 0) + by
    roomUsers.set(room, users)
    return users
  }
  // A refusal is visible in the room's status.
  const join = (): void => void room.join().catch(() => undefined)
  change(1)
  join()
  const stop = watchSignIn(client, join)
  let isReleased = false
  return () => {
    if (isReleased) return
    isReleased = true
    stop()
    if (change(-1) === 0)
      later(() => {
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

/** What a room shows. */
export const readRoom = (room: Room): typeof emptyRoom => ({
  status: room.status,
  shared: room.shared.current,
  player: room.player.current,
  members: room.members.current,
})

/** Joins a room and calls the listener when anything of it changes. Returns the function that releases it. */
export function followRoom(client: Client<Untyped>, room: Room, listener: () => void): () => void {
  const stop = watchRoom(room, listener)
  const leave = enterRoom(client, room)
  return () => {
    stop()
    leave()
  }
}
