/** Rooms, nodes and subscriptions as the API for administrators shows them, read again while their view is visible. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api } from '../../app/transport.ts'

export interface RoomKey {
  readonly namespace: string
  readonly id: string
}

export interface Load {
  readonly messagesPerSecond: number
  readonly tickMs: number
  readonly stateBytes: number
}

export interface Occupancy {
  readonly activeMembers: number
  readonly activeConnections: number
}

export interface ListedRoom {
  readonly namespace: string
  readonly roomId: string
  readonly occupancy: Occupancy
  readonly load: Load
  readonly node: string | null
}

interface RoomList {
  readonly rooms: readonly ListedRoom[]
  /** Not null if there are more rooms than one page. */
  readonly cursor: string | null
}

export interface RoomPlayer {
  readonly userId: string
  readonly connections: number
  readonly state: object
  readonly version: number
}

export interface RoomAction {
  readonly at: string
  readonly userId: string
  readonly actionType: string
  /** JSON; null if it was absent or too large. */
  readonly payload: string | null
  readonly durationMs: number
  readonly error: string | null
  /** The service key or administrator that acted as the user. */
  readonly sentBy: string | null
}

export interface Room {
  readonly epoch: string
  readonly shared: object
  readonly server: object
  readonly metadata: object
  readonly occupancy: Occupancy
  readonly players: readonly RoomPlayer[]
  /** Oldest first. */
  readonly actions: readonly RoomAction[]
  readonly load: Load
  /** States that were cut: `shared`, `server`, `metadata`, `player:ID`. */
  readonly previews: readonly string[]
  readonly cursor: string | null
}

export interface Channel {
  readonly channel: string
  readonly subscribers: number
}

export interface ServerNode {
  readonly id: string
  readonly host: string
  readonly pid: number
  readonly version: string
  readonly startedAt: string
  readonly load: { readonly cpu: number; readonly memoryBytes: number }
  readonly sockets: {
    readonly open: number
    readonly pending: number
    readonly subscriptions: number
    readonly rooms: number
  }
  readonly subscriptions: { readonly subscriptions: number; readonly queries: number; readonly paused: number }
  readonly rooms: { readonly rooms: number; readonly players: number; readonly connections: number }
  readonly leases: readonly string[]
}

export interface ServerNodes {
  readonly items: readonly ServerNode[]
  readonly channels: readonly Channel[]
  readonly truncated?: true
}

/** How often a visible view is read again. */
const refreshMs = 2000
/** The most rooms that one request returns. */
export const roomsListedMax = 1000
/** Larger states are shown as previews. */
const previewBytes = 64 * 1024

export const useRooms = (namespace: string) =>
  useQuery({
    queryKey: ['rooms', 'list', namespace],
    refetchInterval: refreshMs,
    queryFn: ({ signal }) => {
      const query = { limit: roomsListedMax, ...(namespace === '' ? {} : { namespace }) }
      return api.get<RoomList>('/api/room/admin/rooms', { query, signal })
    },
  })

/** One room, with the players after `cursor`. */
export const useRoom = ({ namespace, id }: RoomKey, cursor: string) =>
  useQuery<Room>({
    queryKey: ['rooms', 'room', namespace, id, cursor],
    // A room that has left memory is not asked for again and again.
    refetchInterval: ({ state }) => (state.status === 'error' ? false : refreshMs),
    queryFn: ({ signal }) => {
      const query = { namespace, id, preview: previewBytes, ...(cursor === '' ? {} : { cursor }) }
      return api.get('/api/room/admin/room', { query, signal })
    },
  })

export const useNodes = () =>
  useQuery({
    queryKey: ['nodes'],
    refetchInterval: refreshMs,
    queryFn: ({ signal }) => api.get<ServerNodes>('/api/nodes', { signal }),
  })

export function useKick(room: RoomKey) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: (userId: string) => api.post('/api/room/admin/kick', { body: { ...room, userId } }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['rooms'] }),
  })
}

export type ActionAnswer =
  | { readonly ok: true; readonly result?: unknown }
  | { readonly ok: false; readonly error: { readonly code: string; readonly message: string } }

export interface PlayerAction {
  readonly userId: string
  readonly actionType: string
  readonly payload?: unknown
}

/** Sends an action in the name of a member. */
export function useSendAsPlayer(room: RoomKey) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: (action: PlayerAction) =>
      api.post<ActionAnswer>('/api/room/admin/act', { body: { ...room, ...action } }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['rooms', 'room'] }),
  })
}

/** Saves a room and drops it from memory. */
export const hibernate = (room: RoomKey): Promise<unknown> => api.post('/api/room/admin/hibernate', { body: room })
