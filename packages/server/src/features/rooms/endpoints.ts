/** The HTTP surface of rooms: what each endpoint takes and answers. The handlers are in `index`. */
import { z } from 'zod'
import { isStorableText } from '../../base/text/text.ts'
import {
  type Call,
  type Endpoint,
  endpoint,
  type Reply,
  type SocketEndpoint,
  socketEndpoint,
} from '../../http/endpoint.ts'
import { cursorParam, limitParam } from '../../http/input/query-schema.ts'
import {
  roomIdCharsMax,
  roomListLimit,
  roomListLimitMax,
  roomNameCharsMax,
  roomSummariesMax,
} from '../../limits/rooms.ts'
import { isRoomId } from './room-id.ts'

const optionalRoom = z.object({ namespace: z.string().optional(), id: z.string().optional() })

const roomId = z.string().refine(isRoomId, `must be 1 to ${roomIdCharsMax} printable characters`)
const namespace = z.string().refine(isStorableText, 'must be text without NUL')
const room = z.object({ namespace, id: roomId })
const rooms = z.object({ namespace, ids: z.array(roomId).max(roomSummariesMax) })
const roomList = z.object({
  limit: limitParam({ default: roomListLimit, max: roomListLimitMax }),
  cursor: cursorParam(),
})
const inspected = room.extend({ cursor: cursorParam('`cursor` of the previous page of players') })
const player = room.extend({ userId: z.string().min(1).max(roomNameCharsMax) })

/** The room that the query of a socket names, not validated. */
export type ConnectCall = Call<z.infer<typeof optionalRoom>>
export type RoomCall = Call<z.infer<typeof room>>
export type RoomsCall = Call<unknown, z.infer<typeof rooms>>

export interface RoomHandlers {
  readonly check: (call: ConnectCall) => Reply
  readonly open: SocketEndpoint<z.infer<typeof optionalRoom>>['open']
  readonly refuseCrowd: (call: ConnectCall) => Reply
  readonly authTimeoutMs: (call: ConnectCall) => number
  readonly messageBytesMax: (call: ConnectCall) => number
  readonly summary: (call: RoomCall) => Promise<Reply>
  readonly summaries: (call: RoomsCall) => Promise<Reply>
  readonly metadata: (call: RoomCall) => Promise<Reply>
  readonly list: (call: Call<z.infer<typeof roomList>>) => Promise<Reply>
  readonly inspect: (call: Call<z.infer<typeof inspected>>) => Promise<Reply>
  readonly kick: (call: Call<unknown, z.infer<typeof player>>) => Promise<Reply>
  readonly hibernate: (call: Call<unknown, z.infer<typeof room>>) => Promise<Reply>
}

const tag = 'Rooms'

/** Which namespace is meant stands in a query or a body, which scopes do not reach into. */
const readScope = (): string => 'rooms:namespace:*:read'
const writeScope = (): string => 'rooms:namespace:*:write'

const readiness = z.object({
  ok: z.boolean(),
  type: z.string(),
  category: z.string(),
  message: z.string(),
  namespace: z.string().optional(),
  roomId: z.string().optional(),
  runtime: z.string(),
  protocolVersion: z.int(),
  pendingCount: z.number(),
  maxPending: z.number(),
})
const truncated = z.literal(true).optional()
const metadata = z.record(z.string(), z.unknown())
const occupancy = z.object({ activeMembers: z.number(), activeConnections: z.number() })
const summary = z.object({
  namespace: z.string(),
  roomId: z.string(),
  metadata,
  occupancy,
  updatedAt: z.string(),
})
const summaries = z.object({
  namespace: z.string(),
  items: z.array(summary),
  deniedIds: z.array(z.string()),
  updatedAt: z.string(),
  truncated: truncated.describe('Present where further rooms did not fit: ask for them by themselves'),
})
const ok = z.object({ ok: z.literal(true) })
const view = z.object({
  namespace: z.string(),
  roomId: z.string(),
  epoch: z.string(),
  sharedVersion: z.number(),
  shared: metadata,
  server: metadata,
  metadata,
  occupancy,
  players: z.array(z.object({ userId: z.string(), connections: z.number(), state: metadata, version: z.number() })),
  actions: z.array(
    z.object({
      at: z.string(),
      userId: z.string(),
      actionType: z.string(),
      durationMs: z.number(),
      error: z.string().nullable(),
    }),
  ),
  truncated,
  cursor: z.string().nullable(),
})

const gate =
  'Shown where `access.metadata` or `public.metadata` of the namespace allow it; without either, to anybody in development mode and to nobody else in release mode.'

export function roomEndpoints(handlers: RoomHandlers): readonly Endpoint[] {
  return [
    endpoint({
      name: 'rooms.check',
      method: 'GET',
      paths: ['/api/room/connect-check'],
      tag,
      summary: 'Whether a WebSocket to /api/room with the same query would be opened',
      description:
        'A refusal has the same members with `ok` false: 400 for a request that names no room, 404 for a namespace that is not configured, 429 while too many sockets from this address have not authenticated yet.',
      credentials: 'public',
      rateLimit: 'global',
      query: optionalRoom,
      replies: { 200: { description: 'It would', schema: readiness } },
      errors: [404],
      handle: handlers.check,
    }),
    endpoint({
      name: 'rooms.summary',
      method: 'GET',
      paths: ['/api/room/summary'],
      tag,
      summary: 'Metadata and occupancy of a room',
      description: gate,
      credentials: 'rules',
      scope: readScope,
      rateLimit: 'global',
      query: room,
      replies: { 200: { description: 'The room as it is now, whether or not anybody is there', schema: summary } },
      errors: [404],
      handle: handlers.summary,
    }),
    endpoint({
      name: 'rooms.summaries',
      method: 'POST',
      paths: ['/api/room/summaries'],
      tag,
      summary: `Metadata and occupancy of up to ${roomSummariesMax} rooms`,
      description: `${gate} Rooms that may not be shown are in \`deniedIds\`.`,
      credentials: 'rules',
      scope: readScope,
      rateLimit: 'global',
      body: rooms,
      replies: { 200: { description: 'In the order they were asked for, each once', schema: summaries } },
      errors: [404],
      handle: handlers.summaries,
    }),
    endpoint({
      name: 'rooms.metadata',
      method: 'GET',
      paths: ['/api/room/metadata'],
      tag,
      summary: 'Metadata of a room',
      description: gate,
      credentials: 'rules',
      scope: readScope,
      rateLimit: 'global',
      query: room,
      replies: { 200: { description: 'What the room has set; empty when it has set nothing', schema: metadata } },
      errors: [404],
      handle: handlers.metadata,
    }),
    ...administration(handlers),
  ]
}

function administration({ list, inspect, kick, hibernate }: RoomHandlers): readonly Endpoint[] {
  const common = { tag, credentials: 'service', rateLimit: 'global' } as const
  return [
    endpoint({
      ...common,
      name: 'rooms.list',
      method: 'GET',
      paths: ['/api/room/admin/rooms'],
      summary: 'Rooms that are in memory, on any node',
      scope: readScope,
      query: roomList,
      replies: {
        200: {
          description: 'In order of namespace and id; `cursor` is null on the last page',
          schema: z.object({
            rooms: z.array(z.object({ namespace: z.string(), roomId: z.string(), occupancy })),
            cursor: z.string().nullable(),
            truncated,
          }),
        },
      },
      handle: list,
    }),
    endpoint({
      ...common,
      name: 'rooms.inspect',
      method: 'GET',
      paths: ['/api/room/admin/room'],
      summary: 'A room that is in memory, with all of its state and its latest actions',
      description: 'Players are in order of their ids. Those that do not fit into the response follow with `cursor`.',
      scope: readScope,
      query: inspected,
      replies: { 200: { description: 'The room', schema: view } },
      errors: [404],
      handle: inspect,
    }),
    endpoint({
      ...common,
      name: 'rooms.kick',
      method: 'POST',
      paths: ['/api/room/admin/kick'],
      summary: 'Have a player leave a room',
      scope: writeScope,
      body: player,
      replies: { 200: { description: 'Told to the room', schema: ok } },
      errors: [404],
      handle: kick,
    }),
    endpoint({
      ...common,
      name: 'rooms.hibernate',
      method: 'POST',
      paths: ['/api/room/admin/hibernate'],
      summary: 'Save a room and drop it from memory; players who are there bring it back at once',
      scope: writeScope,
      body: room,
      replies: { 200: { description: 'Saved', schema: ok } },
      errors: [404],
      handle: hibernate,
    }),
  ]
}

export const roomSocketEndpoint = (handlers: RoomHandlers): SocketEndpoint =>
  socketEndpoint({
    name: 'rooms.connect',
    path: '/api/room',
    tag,
    summary: 'Join a room over a WebSocket (protocol version 2)',
    kind: 'rooms',
    rateLimit: 'global',
    query: optionalRoom,
    authTimeoutMs: handlers.authTimeoutMs,
    messageBytesMax: handlers.messageBytesMax,
    open: handlers.open,
    tooManyPending: handlers.refuseCrowd,
  })
