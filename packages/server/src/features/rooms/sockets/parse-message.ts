/** Parses the messages of clients into messages of the protocol, or into a description of what is invalid. */
import { PackError, unpack } from '../../../base/text/msgpack.ts'
import type { JsonObject } from '../../../http/input/body.ts'
import type { SocketClientMessage } from '../../../http/sockets/socket-protocol.ts'
import { jsonDepthMax } from '../../../limits/api.ts'
import { roomNameCharsMax } from '../../../limits/rooms.ts'
import type { ResumePoint } from '../engine/ports.ts'
import {
  type LeaveMessage,
  packedKinds,
  type RoomClientMessage,
  type SendMessage,
  type SendSignalMessage,
  type SetMemberStateMessage,
} from '../protocol.ts'

/** Messages that this layer processes; the socket layer processes the others. */
type OwnMessage = Exclude<RoomClientMessage, SocketClientMessage>

export interface ReceivedJoin {
  readonly type: 'join'
  /** Null if the message has no valid position. */
  readonly resume: ResumePoint | null
}

export type ReceivedSignal = Required<Omit<SendSignalMessage, 'memberId'>> & { readonly to: string | null }

/** A message with an invalid member. `problem` names the member and the valid values. */
export interface InvalidMessage {
  readonly type: 'invalid'
  readonly of: 'send' | 'signal'
  readonly problem: string
}

export type ReceivedMessage =
  | ReceivedJoin
  | Required<SendMessage>
  | LeaveMessage
  | Required<SetMemberStateMessage>
  | ReceivedSignal
  | InvalidMessage

/** Whether a value is a valid name or request id: text of 1 to `roomNameCharsMax` characters. */
export const isName = (value: unknown): value is string =>
  typeof value === 'string' && value.length > 0 && value.length <= roomNameCharsMax

const isVersion = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

const nameForm = `must be text of 1 to ${roomNameCharsMax} characters`

/** The position that a client reports: versions within an epoch. States that clients send are never read. */
function resumePointOf({ epoch, lastSharedVersion, lastPlayerVersion }: JsonObject): ResumePoint | null {
  if (!isName(epoch) || !isVersion(lastSharedVersion) || !isVersion(lastPlayerVersion)) return null
  return { epoch, sharedVersion: lastSharedVersion, playerVersion: lastPlayerVersion }
}

const invalidSend = (name: string): InvalidMessage => ({
  type: 'invalid',
  of: 'send',
  problem: `${name} ${nameForm}`,
})

function parseSend({ actionType, payload = {}, requestId }: JsonObject): Required<SendMessage> | InvalidMessage {
  if (!isName(requestId)) return invalidSend('requestId')
  if (!isName(actionType)) return invalidSend('actionType')
  return { type: 'send', actionType, payload, requestId }
}

function parseSignal(message: JsonObject): ReceivedSignal | InvalidMessage {
  const { event, payload = null, memberId = null, to = memberId, includeSelf = false, requestId = null } = message
  const invalid = (problem: string): InvalidMessage => ({ type: 'invalid', of: 'signal', problem })
  if (!isName(event)) return invalid(`event ${nameForm}`)
  if (to !== null && typeof to !== 'string') return invalid('to must be the id of a member')
  if (typeof includeSelf !== 'boolean') return invalid('includeSelf must be true or false')
  if (requestId !== null && !isName(requestId)) return invalid(`requestId ${nameForm}`)
  return { type: 'signal', event, payload, to, includeSelf, requestId }
}

const parsers: {
  readonly [Type in OwnMessage['type']]: (message: JsonObject) => (ReceivedMessage & { type: Type }) | InvalidMessage
} = {
  join: (message) => ({ type: 'join', resume: resumePointOf(message) }),
  send: parseSend,
  leave: () => ({ type: 'leave' }),
  member_state: ({ state = null }) => ({ type: 'member_state', state }),
  signal: parseSignal,
}

const isOwnType = (type: string): type is OwnMessage['type'] => Object.hasOwn(parsers, type)

/** Null for an unknown type. */
export const parseClientMessage = (type: string, message: JsonObject): ReceivedMessage | null =>
  isOwnType(type) ? parsers[type](message) : null

/** The message in a binary frame: a `send`; null for anything else. Its members are checked like those of JSON. */
export function parsePacked(bytes: Uint8Array): JsonObject | null {
  try {
    const value = unpack(bytes, jsonDepthMax)
    if (!Array.isArray(value) || value.length !== 4 || value[0] !== packedKinds.send) return null
    const [, actionType, requestId, payload] = value
    return { type: 'send', actionType, requestId, payload }
  } catch (error) {
    if (error instanceof PackError) return null
    throw error
  }
}
