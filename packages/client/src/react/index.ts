/** React hooks. Components with equal queries share one subscription; StrictMode and hot reload open nothing twice. */
import {
  createContext,
  createElement,
  type ReactElement,
  type ReactNode,
  useCallback,
  useContext,
  useEffect,
  useMemo,
  useRef,
  useState,
  useSyncExternalStore,
} from 'react'
import {
  coreOf,
  emptyList,
  emptyRecord,
  emptyRoom,
  keyOf,
  readRoom,
  recordKeyOf,
  textKeyOf,
  watchRoom,
} from '../adapters/live-source.ts'
import { isPlinthError, type PlinthError } from '../core/error.ts'
import type { Session, User } from '../types/auth.ts'
import type { Client } from '../types/client.ts'
import type { Untyped } from '../types/config-shape.ts'
import type { Bucket, UploadProgress } from '../types/files.ts'
import type { LiveListState, LiveRecordState } from '../types/live.ts'
import type { Query, Table } from '../types/records.ts'
import type { Room } from '../types/rooms.ts'

const Context = createContext<unknown>(null)

/** Provides the client to the hooks below it. */
export function PlinthProvider({ client, children }: { client: Client<Untyped>; children?: ReactNode }): ReactElement {
  return createElement(Context.Provider, { value: client }, children)
}

/** The client of the nearest `PlinthProvider`. */
export function usePlinth<Config = Untyped>(): Client<Config> {
  const client = useContext(Context)
  if (!client) throw new Error('usePlinth needs a PlinthProvider above it')
  return client as Client<Config>
}

const nothing = (): void => undefined

/** Clients whose stored session has been read. */
const loaded = new WeakSet<object>()

/** The signed-in user. `isLoading` until the stored session has been read. */
export function useSession(): { session: Session | null; user: User | null; isLoading: boolean } {
  const { auth } = usePlinth()
  const subscribe = useCallback(
    (listener: () => void) => {
      let isMounted = true
      void auth.ready.then(() => {
        loaded.add(auth)
        if (isMounted) listener()
      })
      const stop = auth.onChange(listener)
      return () => {
        isMounted = false
        stop()
      }
    },
    [auth],
  )
  const session = useSyncExternalStore(
    subscribe,
    () => auth.session,
    () => null,
  )
  const isLoading = useSyncExternalStore(
    subscribe,
    () => !loaded.has(auth),
    () => true,
  )
  return { session, user: session?.user ?? null, isLoading }
}

/** The result of a live query; null reads nothing. */
export function useLive<Row>(query: Query<Row> | null): LiveListState<Row> & { readonly isLoading: boolean } {
  const key = textKeyOf(query)
  // Queries are created while rendering; equal ones have one key.
  const list = useMemo(() => query?.live() ?? null, [key, coreOf(query)])
  const state = useSyncExternalStore<LiveListState<Row>>(
    useCallback((listener) => list?.subscribe(listener) ?? nothing, [list]),
    () => list?.current ?? emptyList,
    () => emptyList,
  )
  return { ...state, isLoading: query !== null && state.status === 'loading' }
}

/** One record, kept up to date; null reads nothing. */
export function useRecord<Row>(
  table: Table<Row>,
  id: string | null,
): LiveRecordState<Row> & { readonly isLoading: boolean } {
  const key = recordKeyOf(table, id)
  // Tables are created while rendering; equal ones have one key.
  const record = useMemo(() => (id === null ? null : table.liveRecord(id)), [key, coreOf(table)])
  const state = useSyncExternalStore<LiveRecordState<Row>>(
    useCallback((listener) => record?.subscribe(listener) ?? nothing, [record]),
    () => record?.current ?? emptyRecord,
    () => emptyRecord,
  )
  return { ...state, isLoading: id !== null && state.status === 'loading' }
}

/** A room, joined as long as a component uses it; null joins nothing. */
export function useRoom(
  namespace: string,
  id: string | null,
): { room: Room | null; status: string; shared: Untyped; player: Untyped; members: readonly object[] } {
  const client = usePlinth()
  const room = useMemo<Room | null>(() => (id === null ? null : client.room(namespace, id)), [client, namespace, id])
  useEffect(() => room?.retain(), [room])
  const subscribe = useCallback((listener: () => void) => (room ? watchRoom(room, listener) : nothing), [room])
  const part = <Name extends keyof typeof emptyRoom>(name: Name): (typeof emptyRoom)[Name] =>
    useSyncExternalStore(
      subscribe,
      () => (room ? readRoom(room) : emptyRoom)[name],
      () => emptyRoom[name],
    )
  return { room, status: part('status'), shared: part('shared'), player: part('player'), members: part('members') }
}

interface UploadState {
  progress: UploadProgress | null
  isUploading: boolean
  error?: PlinthError
}

/** Uploads to a bucket, also while unmounted. The state is that of the last upload; `abort` ends all of them. */
export function useUpload(bucket: string): UploadState & { upload: Bucket['upload']; abort(): void } {
  const client = usePlinth()
  const [state, setState] = useState<UploadState>({ progress: null, isUploading: false })
  const [running] = useState(() => new Set<AbortController>())
  const last = useRef<AbortController | null>(null)
  const abort = useCallback(() => {
    for (const controller of running) controller.abort()
  }, [running])
  const upload = useCallback<Bucket['upload']>(
    async (key, data, options = {}) => {
      const { signal, onProgress } = options
      const controller = new AbortController()
      const onAbort = (): void => controller.abort()
      const set: typeof setState = (next) => {
        if (last.current === controller) setState(next)
      }
      signal?.addEventListener('abort', onAbort)
      if (signal?.aborted) onAbort()
      running.add(controller)
      last.current = controller
      set({ progress: null, isUploading: true })
      try {
        const stored = await client.files(bucket as never).upload(key, data, {
          ...options,
          signal: controller.signal,
          onProgress(progress) {
            set({ progress, isUploading: true })
            onProgress?.(progress)
          },
        })
        set(({ progress }) => ({ progress, isUploading: false }))
        return stored
      } catch (error) {
        const isShown = isPlinthError(error) && error.slug !== 'aborted'
        set({ progress: null, isUploading: false, ...(isShown ? { error } : {}) })
        throw error
      } finally {
        signal?.removeEventListener('abort', onAbort)
        running.delete(controller)
      }
    },
    [client, bucket, running],
  )
  return { ...state, upload, abort }
}

/** Options for `useQuery` of TanStack Query: the rows of a query, read once. */
export const queryOptions = <Row>(query: Query<Row>) => ({
  queryKey: keyOf(query),
  queryFn: async ({ signal }: { signal: AbortSignal }): Promise<readonly Row[]> => (await query.list({ signal })).items,
})
