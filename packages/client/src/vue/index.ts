/** Vue composables. They subscribe while their component, or another effect scope, is active. */
import {
  computed,
  getCurrentInstance,
  onMounted,
  onScopeDispose,
  type Ref,
  type ShallowRef,
  shallowRef,
  toRaw,
  toValue,
  watch,
} from 'vue'
import {
  coreOf,
  emptyList,
  emptyRecord,
  emptyRoom,
  followRoom,
  isOnServer,
  readRoom,
  textKeyOf,
} from '../adapters/live-source.ts'
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

/**
 * Runs `start` now, or once the component is mounted where it is hydrated: until then it shows what the server
 * rendered. On servers nothing starts.
 */
function onClient(start: () => unknown): void {
  if (isOnServer()) return
  if (getCurrentInstance()?.vnode.el) onMounted(start)
  else start()
}

/** A value that is read again whenever `listen` calls back. */
function observe<Value>(
  empty: Value,
  read: () => Value,
  listen: (listener: () => void) => () => void,
): Readonly<ShallowRef<Value>> {
  const value = shallowRef(empty) as ShallowRef<Value>
  const update = (): void => {
    value.value = read()
  }
  let stop: (() => void) | undefined
  onClient(() => {
    stop = listen(update)
    update()
  })
  onScopeDispose(() => stop?.())
  return value
}

/** The state of what `open` returns, opened again whenever a key changes. */
function follow<State>(keys: (() => unknown)[], open: () => Live<State> | null, empty: State): ShallowRef<State> {
  const state = shallowRef(empty) as ShallowRef<State>
  let stop: (() => void) | undefined
  const reopen = (): void => {
    stop?.()
    const live = open()
    state.value = live?.current ?? empty
    stop = live?.subscribe(() => {
      state.value = live.current
    })
  }
  onClient(() => watch(keys, reopen, { immediate: true }))
  onScopeDispose(() => stop?.())
  return state
}

/** The result of a live query; null reads nothing. */
export function useLive<Row>(query: Source<Query<Row> | null>): Readonly<Ref<LiveListState<Row>>> {
  // A deep ref wraps what it contains in a proxy, through which the client cannot be used.
  const read = () => toRaw(toValue(query))
  const keys = [() => textKeyOf(read()), () => coreOf(read())]
  return follow<LiveListState<Row>>(keys, () => read()?.live() ?? null, emptyList)
}

/** One record, kept up to date; null reads nothing. */
export const useRecord = <Row>(table: Table<Row>, id: Source<string | null>): Readonly<Ref<LiveRecordState<Row>>> =>
  follow<LiveRecordState<Row>>(
    [() => toValue(id)],
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
  const session = observe(null, () => auth.session, auth.onChange)
  return { session, user: computed(() => session.value?.user ?? null) }
}

/** A room, joined as long as the scope is active. */
export function useRoom(client: Client<Untyped>, namespace: string, id: string) {
  const room: Room = client.room(namespace, id)
  const state = observe(
    emptyRoom,
    () => readRoom(room),
    (listener) => followRoom(client, room, listener),
  )
  return { room, state }
}
