/** Serializes the messages of a room, typed by the protocol. */
import type { SocketErrorCodeOn } from '../../../../errors.ts'
import { createEncoder, type MessageText } from '../../../../http/sockets/socket-message.ts'
import type { RoomServerMessage } from '../../protocol.ts'

/** A message of the protocol, serialized. */
export type RoomText = MessageText<RoomServerMessage>

export type RoomErrorCode = SocketErrorCodeOn<'rooms'>

export const { encode, assemble } = createEncoder<RoomServerMessage>()

export const errorText = (code: RoomErrorCode, message: string): RoomText => encode({ type: 'error', code, message })
