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
import { emptyList, emptyRecord, enterRoom, keyOf, recordKeyOf, textKeyOf, watchRoom } from '../adapters/live-source.ts'
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

/** The signed-in user. `isLoading` until the stored session has been read. */
export function useSession(): { session: Session | null; user: User | null; isLoading: boolean } {
  const { auth } = usePlinth()
  const [isLoading, setLoading] = useState(true)
  useEffect(() => {
    let isMounted = true
    void auth.ready.then(() => isMounted && setLoading(false))
    return () => {
      isMounted = false
    }
  }, [auth])
  const session = useSyncExternalStore(
    auth.onChange,
    () => auth.session,
    () => null,
  )
  return { session, user: session?.user ?? null, isLoading }
}

/** The result of a live query; null reads nothing. */
export function useLive<Row>(query: Query<Row> | null): LiveListState<Row> & { readonly isLoading: boolean } {
  const key = textKeyOf(query)
  // Queries are created while rendering; equal ones have one key.
  const list = useMemo(() => query?.live() ?? null, [key])
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
  const record = useMemo(() => (id === null ? null : table.liveRecord(id)), [key])
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
  useEffect(() => (room ? enterRoom(room) : undefined), [room])
  const subscribe = useCallback((listener: () => void) => (room ? watchRoom(room, listener) : nothing), [room])
  const status = useSyncExternalStore(
    subscribe,
    () => room?.status ?? 'closed',
    () => 'closed',
  )
  const shared = useSyncExternalStore<Untyped>(subscribe, () => room?.shared.current, nothing)
  const player = useSyncExternalStore<Untyped>(subscribe, () => room?.player.current, nothing)
  const members = useSyncExternalStore(
    subscribe,
    () => room?.members.current ?? emptyList.items,
    () => emptyList.items,
  )
  return { room, status, shared, player, members }
}

/** Uploads one file at a time to a bucket, with its progress. */
export function useUpload(bucket: string): {
  upload: Bucket['upload']
  progress: UploadProgress | null
  isUploading: boolean
  error?: PlinthError
  abort(): void
} {
  const client = usePlinth()
  const [state, setState] = useState<{ progress: UploadProgress | null; isUploading: boolean; error?: PlinthError }>({
    progress: null,
    isUploading: false,
  })
  const current = useRef<AbortController | null>(null)
  const abort = useCallback(() => current.current?.abort(), [])
  useEffect(() => abort, [abort])
  const upload = useCallback<Bucket['upload']>(
    async (key, data, options = {}) => {
      const { signal, onProgress } = options
      const controller = new AbortController()
      signal?.addEventListener('abort', () => controller.abort())
      if (signal?.aborted) controller.abort()
      current.current = controller
      const set = (next: typeof state): void => {
        if (current.current === controller) setState(next)
      }
      set({ progress: null, isUploading: true })
      try {
        return await client.files(bucket as never).upload(key, data, {
          ...options,
          signal: controller.signal,
          onProgress(progress) {
            set({ progress, isUploading: true })
            onProgress?.(progress)
          },
        })
      } catch (error) {
        set({ progress: null, isUploading: false, ...(isPlinthError(error) ? { error } : {}) })
        throw error
      } finally {
        if (current.current === controller) setState((last) => ({ ...last, isUploading: false }))
      }
    },
    [client, bucket],
  )
  return { upload, ...state, abort }
}

/** Options for `useQuery` of TanStack Query: the rows of a query, read once. */
export const queryOptions = <Row>(query: Query<Row>) => ({
  queryKey: keyOf(query),
  queryFn: async ({ signal }: { signal: AbortSignal }): Promise<readonly Row[]> => (await query.list({ signal })).items,
})
