/**
 * Messages of one tick of the event loop, sent as one packet, because each send costs a system call and an event. Text
 * is cheaper to send than objects; objects are needed for bytes.
 */
import { hostPacketChars } from '../../limits/functions.ts'

/** What is sent: messages as text, or the list where one contains bytes. */
export type Packet<Message> = string | readonly Message[]

export interface Outbox<Message> {
  /** Sends a message at the end of the tick. */
  post(message: Message): void
  /** Sends a message, and what was posted before it, at once. */
  send(message: Message): void
}

export interface OutboxOptions<Message> {
  /** Whether a message contains bytes, which JSON cannot express. */
  readonly hasBytes: (message: Message) => boolean
  /** Roughly the characters of a message, so that the receiver does not parse too much at once. */
  readonly sizeOf: (message: Message) => number
  /** One or more lines. */
  readonly encode: (message: Message) => string
  readonly send: (packet: Packet<Message>) => void
}

export function createOutbox<Message>({ hasBytes, sizeOf, encode, send }: OutboxOptions<Message>): Outbox<Message> {
  let posted: Message[] = []
  let isBinary = false
  let size = 0
  const add = (message: Message): void => {
    posted.push(message)
    isBinary ||= hasBytes(message)
    size += sizeOf(message)
  }
  const flush = (): void => {
    if (posted.length === 0) return
    const packet = isBinary ? posted : posted.map(encode).join('\n')
    posted = []
    isBinary = false
    size = 0
    send(packet)
  }
  return {
    post(message) {
      if (posted.length === 0) setImmediate(flush)
      add(message)
      if (size > hostPacketChars) flush()
    },
    send(message) {
      add(message)
      flush()
    },
  }
}
