/** Vue composables. They subscribe while their component, or another effect scope, is active. */
import { computed, onScopeDispose, type Ref, type ShallowRef, shallowRef, toValue, watch } from 'vue'
import { emptyList, emptyRecord, enterRoom, recordKeyOf, textKeyOf, watchRoom } from '../adapters/live-source.ts'
import type { Session, User } from '../types/auth.ts'
import type { Client } from '../types/client.ts'
import type { Untyped } from '../types/config-shape.ts'
import type { LiveListState, LiveRecordState } from '../types/live.ts'
import type { Query, Table } from '../types/records.ts'
import type { Room } from '../types/rooms.ts'

/** A value, a ref, or a getter of one. */
type Source<Value> = Value | Ref<Value> | (() => Value)

interface Live<State> {
  readonly current: State
  subscribe(listener: () => void): () => void
}

/** The state of what `open` returns, opened again whenever the key changes. */
function follow<State>(key: () => string, open: () => Live<State> | null, empty: State): ShallowRef<State> {
  const state = shallowRef(empty) as ShallowRef<State>
  let stop: (() => void) | undefined
  watch(
    key,
    () => {
      stop?.()
      const live = open()
      state.value = live?.current ?? empty
      stop = live?.subscribe(() => {
        state.value = live.current
      })
    },
    { immediate: true },
  )
  onScopeDispose(() => stop?.())
  return state
}

/** The result of a live query; null reads nothing. */
export const useLive = <Row>(query: Source<Query<Row> | null>): Readonly<Ref<LiveListState<Row>>> =>
  follow<LiveListState<Row>>(
    () => textKeyOf(toValue(query)),
    () => toValue(query)?.live() ?? null,
    emptyList,
  )

/** One record, kept up to date; null reads nothing. */
export const useRecord = <Row>(table: Table<Row>, id: Source<string | null>): Readonly<Ref<LiveRecordState<Row>>> =>
  follow<LiveRecordState<Row>>(
    () => recordKeyOf(table, toValue(id)),
    () => {
      const value = toValue(id)
      return value === null ? null : table.liveRecord(value)
    },
    emptyRecord,
  )

/** The signed-in user. */
export function useSession({ auth }: Client<Untyped>): {
  session: Readonly<Ref<Session | null>>
  user: Readonly<Ref<User | null>>
} {
  const session = shallowRef(auth.session)
  onScopeDispose(
    auth.onChange((next) => {
      session.value = next
    }),
  )
  return { session, user: computed(() => session.value?.user ?? null) }
}

/** A room, joined as long as the scope is active. */
export function useRoom(client: Client<Untyped>, namespace: string, id: string) {
  const room: Room = client.room(namespace, id)
  const read = () => ({
    status: room.status,
    shared: room.shared.current,
    player: room.player.current,
    members: room.members.current,
  })
  const state = shallowRef(read())
  const stop = watchRoom(room, () => {
    state.value = read()
  })
  const leave = enterRoom(room)
  onScopeDispose(() => {
    stop()
    leave()
  })
  return { room, state: state as Readonly<typeof state> }
}
