/**
 * The socket endpoint of rooms, and connect-check, which reports whether an upgrade would succeed. The join rule runs
 * later, once the user is authenticated.
 */

import { countedAddress } from '../../../base/network/address.ts'
import { z } from '../../../base/schemas/z.ts'
import type { RoomNamespace } from '../../../config/sections/rooms/rooms.ts'
import type { ErrorSlug } from '../../../errors.ts'
import {
  type Call,
  type Endpoint,
  endpoint,
  type Reply,
  type SocketEndpoint,
  socketEndpoint,
} from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import type { Connection, SocketHandler } from '../../../http/sockets/socket-handler.ts'
import type { Sockets } from '../../../http/sockets/sockets.ts'
import { roomIdCharsMax, roomMessageExtraBytes, roomProtocolVersion } from '../../../limits/rooms.ts'
import { pendingSocketsMax, socketAuthTimeoutMs } from '../../../limits/sockets.ts'
import { tag } from '../endpoints/schemas.ts'
import type { RoomKey } from '../engine/ports.ts'
import type { RoomServerMessage } from '../protocol.ts'
import { isRoomId } from '../room-id.ts'

export interface ConnectDeps {
  readonly findNamespace: (name: string) => RoomNamespace | null
  readonly sockets: Pick<Sockets, 'pending'>
  /** Whether connected players occupy all seats. */
  readonly isFull: (key: RoomKey) => Promise<boolean>
  readonly openSession: (connection: Connection<RoomServerMessage>, key: RoomKey) => SocketHandler<RoomServerMessage>
}

/** Not validated: an invalid room is answered in the form of connect-check. */
const connectSchema = z.object({ namespace: z.string().optional(), id: z.string().optional() })

type ConnectCall = Call<z.infer<typeof connectSchema>>

const readinessSchema = z.object({
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

const rejections = {
  400: { slug: 'invalid-input', type: 'room_connect_invalid_request', category: 'request' },
  403: { slug: 'room-full', type: 'room_connect_full', category: 'capacity' },
  404: { slug: 'not-found', type: 'room_namespace_not_configured', category: 'config' },
  429: { slug: 'rate-limited', type: 'room_connect_rate_limited', category: 'rate_limit' },
} as const satisfies Readonly<Record<number, { slug: ErrorSlug; type: string; category: string }>>

export class ConnectEndpoints {
  constructor(private readonly deps: ConnectDeps) {}

  get check(): Endpoint {
    return endpoint({
      name: 'rooms.check',
      method: 'GET',
      paths: ['/api/room/connect-check'],
      tag,
      summary: 'Check whether a WebSocket to /api/room with the same query would be opened',
      description:
        'A rejection has the same members with `ok` false: 400 for a query without a valid room, 404 for a namespace that is not configured, 429 while too many sockets from this address have not authenticated yet.',
      credentials: 'public',
      rateLimit: 'global',
      query: connectSchema,
      replies: { 200: { description: 'The socket would be opened', schema: readinessSchema } },
      errors: [404],
      handle: (call) => this.checkReadiness(call),
    })
  }

  get socket(): SocketEndpoint {
    return socketEndpoint({
      name: 'rooms.connect',
      path: '/api/room',
      tag,
      summary: 'Connect to a room over a WebSocket (protocol version 2)',
      kind: 'rooms',
      rateLimit: 'global',
      query: connectSchema,
      authTimeoutMs: (call: ConnectCall) => this.namespaceOf(call)?.authTimeoutMs ?? socketAuthTimeoutMs,
      messageBytesMax: (call: ConnectCall) => 2 * (this.namespaceOf(call)?.maxStateBytes ?? 0) + roomMessageExtraBytes,
      open: async (call: ConnectCall) => {
        const room = this.parseRoom(call)
        if ('status' in room) return room
        if (await this.deps.isFull(room)) return this.reject(call, 403, 'The room is full')
        return (connection: Connection<RoomServerMessage>) => this.deps.openSession(connection, room)
      },
      tooManyPending: (call: ConnectCall) => this.tooManyPending(call),
    })
  }

  private checkReadiness(call: ConnectCall): Reply {
    const room = this.parseRoom(call)
    if ('status' in room) return room
    const state = this.describe(call)
    if (state.pendingCount >= state.maxPending) return this.tooManyPending(call)
    return json({ ok: true, type: 'room_connect_ready', category: 'ready', message: 'Ready to connect', ...state })
  }

  /** The room that the query names, or the response that rejects it. */
  private parseRoom(call: ConnectCall): RoomKey | Reply {
    const { namespace, id } = call.query
    if (namespace === undefined || id === undefined) return this.reject(call, 400, 'namespace and id are required')
    if (!isRoomId(id)) return this.reject(call, 400, `id must be 1 to ${roomIdCharsMax} printable characters`)
    const found = this.deps.findNamespace(namespace)
    if (!found) return this.reject(call, 404, 'This namespace is not configured')
    // The string of the configuration: all sockets share it, and each message looks its namespace up by it.
    return { namespace: found.name, id }
  }

  private namespaceOf({ query }: ConnectCall): RoomNamespace | null {
    return this.deps.findNamespace(query.namespace ?? '')
  }

  private tooManyPending(call: ConnectCall): Reply {
    return this.reject(call, 429, 'Too many connections from this address are waiting for authentication')
  }

  private reject(call: ConnectCall, status: keyof typeof rejections, message: string): Reply {
    const body = { ok: false, code: status, ...rejections[status], message, ...this.describe(call) }
    return json(body, status, status === 429 ? { 'Retry-After': '1' } : {})
  }

  private describe({ query, address }: ConnectCall) {
    return {
      ...(query.namespace === undefined ? {} : { namespace: query.namespace }),
      ...(query.id === undefined ? {} : { roomId: query.id }),
      runtime: 'rooms',
      protocolVersion: roomProtocolVersion,
      pendingCount: this.deps.sockets.pending('rooms', countedAddress(address)),
      maxPending: pendingSocketsMax,
    }
  }
}
