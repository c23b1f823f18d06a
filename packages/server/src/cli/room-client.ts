/**
 * The client of the room admin endpoints for the CLI. Rooms are in the memory of running nodes, and any node shows all
 * of them. Never starts a server of its own, which would take over rooms.
 */
import type { RoomKey, RoomOccupancy } from '../features/rooms/engine/ports.ts'
import { roomListLimitMax } from '../limits/rooms.ts'
import { createAdminCall } from './admin-call.ts'
import { findRunningServer, type RunningServerOptions } from './running-server.ts'

/** A room in a list. */
export interface ListedRoom {
  readonly namespace: string
  readonly roomId: string
  readonly occupancy: RoomOccupancy
}

interface ListedRooms {
  readonly rooms: readonly ListedRoom[]
  readonly cursor: string | null
}

/** The part of a room's state that the CLI uses. */
export interface ShownRoom {
  readonly players: readonly { readonly userId: string }[]
}

/** Functions throw `ApiError` if the server refuses, 404 for a room that is not in memory. */
export interface RoomClient {
  /** Reads page by page. */
  list(): AsyncIterable<ListedRoom>
  show(room: RoomKey): Promise<ShownRoom>
  kick(room: RoomKey, userId: string): Promise<void>
  hibernate(room: RoomKey): Promise<void>
}

/** Uses `url`, or else the server that serves the data folder. Throws if there is none. */
export async function findRoomClient(options: RunningServerOptions): Promise<RoomClient> {
  const { url, serviceKey } = await findRunningServer(options)
  return createClient(url, serviceKey)
}

function createClient(url: string, serviceKey: string): RoomClient {
  const silent = `The server at ${url} did not respond like a Plinth server.`
  const call = createAdminCall({ url, base: '/api/room/admin', serviceKey, silent })
  return {
    async *list() {
      for (let cursor: string | null = ''; cursor !== null; ) {
        const page = cursor === '' ? '' : `&${new URLSearchParams({ cursor })}`
        const answer: ListedRooms = await call('GET', `/rooms?limit=${roomListLimitMax}${page}`)
        yield* answer.rooms
        cursor = answer.cursor
      }
    },
    show: ({ namespace, id }) => call('GET', `/room?${new URLSearchParams({ namespace, id })}`),
    kick: async (room, userId) => void (await call('POST', '/kick', { ...room, userId })),
    hibernate: async (room) => void (await call('POST', '/hibernate', room)),
  }
}
