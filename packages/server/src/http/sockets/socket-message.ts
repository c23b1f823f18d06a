/** Parses text frames of WebSockets and serializes messages. */
import { isJsonObject } from '../../base/text/json.ts'
import { isLongerThan } from '../../base/text/text.ts'
import { jsonDepthMax } from '../../limits/api.ts'
import { isDeeperThan, type JsonObject } from '../input/body.ts'

/** Parses a text frame of at most `bytesMax` bytes that contains a JSON object; null for anything else. */
export function parseMessage(data: string, bytesMax: number): JsonObject | null {
  if (isLongerThan(bytesMax, data) || isTooDeep(data)) return null
  try {
    const value: unknown = JSON.parse(data)
    return isJsonObject(value) ? value : null
  } catch {
    return null
  }
}

/** Short messages are not measured: they cannot close as many brackets, which `JSON.parse` requires. */
const isTooDeep = (data: string): boolean => data.length > 2 * jsonDepthMax && isDeeperThan(jsonDepthMax, data)

declare const messageOf: unique symbol

/** A serialized message; one text may be sent to many sockets. */
export type MessageText<Message> = string & { readonly [messageOf]: Message }

/** Serializes the messages of one protocol. */
export interface Encoder<Message extends { readonly type: string }> {
  encode(message: Message): MessageText<Message>
  /**
   * For hot paths: builds a message from JSON that exists already. `members` is the JSON of the members after `type`,
   * without braces. Tests check every message sent against the protocol.
   */
  assemble(type: Message['type'], members: string): MessageText<Message>
}

export const createEncoder = <Message extends { readonly type: string }>(): Encoder<Message> => ({
  encode: (message) => JSON.stringify(message) as MessageText<Message>,
  assemble: (type, members) => `{"type":"${type}",${members}}` as MessageText<Message>,
})
