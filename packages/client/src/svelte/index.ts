/** Svelte stores: `$list`, `$session`, `$room`. They subscribe while a component uses them. */
import { emptyList, emptyRecord, followRoom, isOnServer, readRoom } from '../adapters/live-source.ts'
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

const nothing = (): void => undefined

/** A store of what `read` returns, read again whenever `watch` calls back. On servers it is read once. */
const store = <Value>(read: () => Value, watch: (listener: () => void) => () => void): Readable<Value> => ({
  subscribe(run) {
    const stop = isOnServer() ? nothing : watch(() => run(read()))
    run(read())
    return stop
  },
})

/** The result of a live query; null reads nothing. */
export function live<Row>(query: Query<Row> | null): Readable<LiveListState<Row>> {
  const list = query?.live()
  return store<LiveListState<Row>>(
    () => list?.current ?? emptyList,
    (listener) => list?.subscribe(listener) ?? nothing,
  )
}

/** One record, kept up to date; null reads nothing. */
export function record<Row>(table: Table<Row>, id: string | null): Readable<LiveRecordState<Row>> {
  const one = id === null ? null : table.liveRecord(id)
  return store<LiveRecordState<Row>>(
    () => one?.current ?? emptyRecord,
    (listener) => one?.subscribe(listener) ?? nothing,
  )
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
  return store(
    () => ({ room: one, ...readRoom(one) }),
    (listener) => followRoom(one, listener),
  )
}
