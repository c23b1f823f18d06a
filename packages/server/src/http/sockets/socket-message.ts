/** Messages of WebSockets as text: frames that are parsed, and messages that are serialized under their type. */
import { jsonDepthMax } from '../../limits/api.ts'
import { isDeeperThan, type JsonObject } from '../input/body.ts'

/** The JSON object in a text frame of at most `bytesMax` bytes; null for anything else. */
export function parseMessage(data: string | Uint8Array, bytesMax: number): JsonObject | null {
  if (typeof data !== 'string' || Buffer.byteLength(data) > bytesMax || isDeeperThan(jsonDepthMax, data)) return null
  try {
    const value: unknown = JSON.parse(data)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject ? (value as JsonObject) : null
  } catch {
    return null
  }
}

declare const messageOf: unique symbol

/** The JSON of a message, serialized before it is sent: one text may go to many sockets. */
export type MessageText<Message> = string & { readonly [messageOf]: Message }

/** Serializes the messages of one protocol, and nothing else. */
export interface Encoder<Message extends { readonly type: string }> {
  encode(message: Message): MessageText<Message>
  /**
   * For hot paths: puts JSON that exists already into a message. `members` are the members behind `type`, in JSON,
   * without braces; tests compare every message that is sent with the protocol.
   */
  assemble(type: Message['type'], members: string): MessageText<Message>
}

export const createEncoder = <Message extends { readonly type: string }>(): Encoder<Message> => ({
  encode: (message) => JSON.stringify(message) as MessageText<Message>,
  assemble: (type, members) => `{"type":"${type}",${members}}` as MessageText<Message>,
})
