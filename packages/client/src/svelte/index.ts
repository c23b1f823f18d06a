/** Svelte stores: `$list`, `$session`, `$room`. They subscribe while a component uses them. */
import { emptyList, enterRoom, watchRoom } from '../adapters/live-source.ts'
import type { Session, User } from '../types/auth.ts'
import type { Client } from '../types/client.ts'
import type { Untyped } from '../types/config-shape.ts'
import type { LiveListState, LiveRecordState } from '../types/live.ts'
import type { Query, Table } from '../types/records.ts'
import type { Room } from '../types/rooms.ts'

/** The contract of Svelte's stores. */
export interface Readable<Value> {
  subscribe(run: (value: Value) => void): () => void
}

/** A store of what `read` returns, read again whenever `watch` calls back. */
const store = <Value>(read: () => Value, watch: (listener: () => void) => () => void): Readable<Value> => ({
  subscribe(run) {
    const stop = watch(() => run(read()))
    run(read())
    return stop
  },
})

/** The result of a live query; null reads nothing. On servers, an empty list. */
export function live<Row>(query: Query<Row> | null): Readable<LiveListState<Row>> {
  const list = query && typeof window === 'object' ? query.live() : null
  return list
    ? store(() => list.current, list.subscribe.bind(list))
    : store<LiveListState<Row>>(
        () => emptyList,
        () => () => undefined,
      )
}

/** One record, kept up to date. */
export function record<Row>(table: Table<Row>, id: string): Readable<LiveRecordState<Row>> {
  const one = table.liveRecord(id)
  return store(() => one.current, one.subscribe)
}

/** The signed-in user. */
export const session = ({ auth }: Client<Untyped>): Readable<{ session: Session | null; user: User | null }> =>
  store(() => ({ session: auth.session, user: auth.user }), auth.onChange)

/** A room, joined as long as the store is used. */
export function room(
  client: Client<Untyped>,
  namespace: string,
  id: string,
): Readable<{ room: Room; status: string; shared: Untyped; player: Untyped; members: readonly object[] }> {
  const one = client.room(namespace, id)
  const read = () => ({
    room: one,
    status: one.status,
    shared: one.shared.current,
    player: one.player.current,
    members: one.members.current,
  })
  return store(read, (listener) => {
    const leave = enterRoom(one)
    const stop = watchRoom(one, listener)
    return () => {
      stop()
      leave()
    }
  })
}
