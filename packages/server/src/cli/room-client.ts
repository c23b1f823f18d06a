/**
 * Rooms for the command line, through the admin endpoints of a server that runs: what there is to see of a room is in
 * its memory, on any of the nodes, and any node shows all of them. Finds that server; opens none of its own, which
 * would take rooms over for the moment.
 */
import { type LoadOptions, load } from '../config/load.ts'
import { checkFolderFree } from '../engines/disk/folder-lock.ts'
import { EngineError } from '../engines/sql/error.ts'
import type { RoomKey, RoomOccupancy } from '../features/rooms/engine/ports.ts'
import { roomListLimitMax } from '../limits/rooms.ts'
import { createAdminCall } from './admin-call.ts'
import { UsageError } from './command.ts'
import { findAddress } from './served-address.ts'

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

/** What is looked at here of all that is shown of a room. */
export interface ShownRoom {
  readonly players: readonly { readonly userId: string }[]
}

/** Every function throws `ApiError` for a refusal, 404 for a room that is not in memory. */
export interface RoomClient {
  /** Page by page. */
  list(): AsyncIterable<ListedRoom>
  show(room: RoomKey): Promise<ShownRoom>
  kick(room: RoomKey, userId: string): Promise<void>
  hibernate(room: RoomKey): Promise<void>
}

/** `url` of any node, or else the server that is serving the data folder. Throws where none is found. */
export async function findRoomClient(
  options: LoadOptions & { readonly url?: string | undefined },
): Promise<RoomClient> {
  const given = options.url === undefined ? null : parseAddress(options.url)
  const { settings } = await load(options, 'release')
  const { serviceKey, dataFolder, databaseUrl } = settings
  return createClient(given ?? (databaseUrl === null ? await findServed(dataFolder) : noServer()), serviceKey)
}

/** Without a slash at the end. */
function parseAddress(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (!url || !['http:', 'https:'].includes(url.protocol))
    throw new UsageError('--url must be an address such as http://127.0.0.1:4100.')
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '')
}

async function findServed(dataFolder: string): Promise<string> {
  // An address may have outlived its server, and anybody may have the port now: the key is not shown to them.
  const url = isServed(dataFolder) ? await findAddress(dataFolder) : null
  return url ?? noServer()
}

/** Whether another process has the folder. */
function isServed(folder: string): boolean {
  try {
    checkFolderFree(folder)
    return false
  } catch (error) {
    if (error instanceof EngineError && error.kind === 'unavailable') return true
    throw error
  }
}

function noServer(): never {
  throw new EngineError(
    'unavailable',
    'No server is found that has rooms. Start it, or name one of its nodes with --url.',
  )
}

function createClient(url: string, serviceKey: string): RoomClient {
  const silent = `The server at ${url} does not answer as Plinth does.`
  const ask = createAdminCall({ url, base: '/api/room/admin', serviceKey, silent })
  return {
    async *list() {
      for (let cursor: string | null = ''; cursor !== null; ) {
        const page = cursor === '' ? '' : `&${new URLSearchParams({ cursor })}`
        const answer: ListedRooms = await ask('GET', `/rooms?limit=${roomListLimitMax}${page}`)
        yield* answer.rooms
        cursor = answer.cursor
      }
    },
    show: ({ namespace, id }) => ask('GET', `/room?${new URLSearchParams({ namespace, id })}`),
    kick: async (room, userId) => void (await ask('POST', '/kick', { ...room, userId })),
    hibernate: async (room) => void (await ask('POST', '/hibernate', room)),
  }
}
