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
 * The state of what `open` returns, opened again whenever a key changes. Where a component is hydrated, it is opened
 * once that is mounted, so that it shows first what the server has rendered; on servers it is not opened.
 */
function follow<State>(
  empty: State,
  open: () => Live<State> | null | undefined,
  keys: (() => unknown)[] = [],
): Readonly<ShallowRef<State>> {
  const state = shallowRef(empty) as ShallowRef<State>
  let stop: (() => void) | undefined
  const reopen = (): void => {
    stop?.()
    const live = open()
    const update = (): void => {
      state.value = live ? live.current : empty
    }
    update()
    stop = live?.subscribe(update)
  }
  const start = () => watch(keys, reopen, { immediate: true })
  if (getCurrentInstance()?.vnode.el) onMounted(start)
  else if (!isOnServer()) start()
  onScopeDispose(() => stop?.())
  return state
}

/** The result of a live query; null reads nothing. */
export function useLive<Row>(query: Source<Query<Row> | null>): Readonly<Ref<LiveListState<Row>>> {
  // A deep ref wraps what it contains in a proxy, through which the client cannot be used.
  const read = () => toRaw(toValue(query))
  return follow<LiveListState<Row>>(emptyList, () => read()?.live(), [() => textKeyOf(read()), () => coreOf(read())])
}

/** One record, kept up to date; null reads nothing. */
export function useRecord<Row>(table: Table<Row>, id: Source<string | null>): Readonly<Ref<LiveRecordState<Row>>> {
  const read = () => toValue(id)
  const open = () => {
    const value = read()
    return value === null ? null : table.liveRecord(value)
  }
  return follow<LiveRecordState<Row>>(emptyRecord, open, [read])
}

/** The signed-in user. */
export function useSession({ auth }: Client<Untyped>): {
  session: Readonly<Ref<Session | null>>
  user: Readonly<Ref<User | null>>
} {
  const session = follow<Session | null>(null, () => ({
    get current() {
      return auth.session
    },
    subscribe: auth.onChange,
  }))
  return { session, user: computed(() => session.value?.user ?? null) }
}

/** A room, joined as long as the scope is active. */
export function useRoom(client: Client<Untyped>, namespace: string, id: string) {
  const room: Room = client.room(namespace, id)
  const state = follow(emptyRoom, () => ({
    get current() {
      return readRoom(room)
    },
    subscribe: (listener) => followRoom(room, listener),
  }))
  return { room, state }
}
