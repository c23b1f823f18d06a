/**
 * Decides whether a socket to a room may be opened, for connect-check and for the upgrade alike. The join rule runs
 * later, once the user is authenticated.
 */
import { countedAddress } from '../../base/network/address.ts'
import type { RoomNamespace } from '../../config/sections/rooms/rooms.ts'
import type { ErrorSlug } from '../../errors.ts'
import type { Reply } from '../../http/endpoint.ts'
import { json } from '../../http/replies/reply.ts'
import type { Sockets } from '../../http/sockets/sockets.ts'
import { roomIdCharsMax, roomProtocolVersion } from '../../limits/rooms.ts'
import { pendingSocketsMax } from '../../limits/sockets.ts'
import type { ConnectCall } from './endpoints.ts'
import type { RoomKey } from './engine/ports.ts'
import { isRoomId } from './room-id.ts'

export interface ConnectDeps {
  readonly findNamespace: (name: string) => RoomNamespace | null
  readonly sockets: Pick<Sockets, 'pending'>
  /** Whether all seats are taken by connected players. */
  readonly isFull: (key: RoomKey) => Promise<boolean>
}

export interface Connect {
  /** Answers connect-check. */
  check(call: ConnectCall): Reply
  /** The room that an upgrade is for, or the answer that refuses it. */
  admit(call: ConnectCall): Promise<RoomKey | Reply>
  refuseCrowd(call: ConnectCall): Reply
}

const refusals = {
  400: { slug: 'invalid-input', type: 'room_connect_invalid_request', category: 'request' },
  403: { slug: 'room-full', type: 'room_connect_full', category: 'capacity' },
  404: { slug: 'not-found', type: 'room_namespace_not_configured', category: 'config' },
  429: { slug: 'rate-limited', type: 'room_connect_rate_limited', category: 'rate_limit' },
} as const satisfies Readonly<Record<number, { slug: ErrorSlug; type: string; category: string }>>

export function createConnect({ findNamespace, sockets, isFull }: ConnectDeps): Connect {
  const state = ({ query, address }: ConnectCall) => ({
    ...(query.namespace === undefined ? {} : { namespace: query.namespace }),
    ...(query.id === undefined ? {} : { roomId: query.id }),
    runtime: 'rooms',
    protocolVersion: roomProtocolVersion,
    pendingCount: sockets.pending('rooms', countedAddress(address)),
    maxPending: pendingSocketsMax,
  })

  const refuse = (call: ConnectCall, status: keyof typeof refusals, message: string): Reply =>
    json(
      { ok: false, code: status, ...refusals[status], message, ...state(call) },
      status,
      status === 429 ? { 'Retry-After': '1' } : {},
    )

  const refuseCrowd = (call: ConnectCall): Reply =>
    refuse(call, 429, 'Too many connections from this address are waiting for authentication')

  function roomOf(call: ConnectCall): RoomKey | Reply {
    const { namespace, id } = call.query
    if (namespace === undefined || id === undefined) return refuse(call, 400, 'namespace and id are required')
    if (!isRoomId(id)) return refuse(call, 400, `id must be 1 to ${roomIdCharsMax} printable characters`)
    if (!findNamespace(namespace)) return refuse(call, 404, 'This namespace is not configured')
    return { namespace, id }
  }

  return {
    check(call) {
      const room = roomOf(call)
      if ('status' in room) return room
      const now = state(call)
      if (now.pendingCount >= now.maxPending) return refuseCrowd(call)
      return json({ ok: true, type: 'room_connect_ready', category: 'ready', message: 'Ready to connect', ...now })
    },
    async admit(call) {
      const room = roomOf(call)
      if ('status' in room) return room
      return (await isFull(room)) ? refuse(call, 403, 'The room is full') : room
    },
    refuseCrowd,
  }
}
