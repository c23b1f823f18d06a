/**
 * The port between a WebSocket and a protocol on it, such as subscriptions or rooms: `Connection` is the socket as the
 * protocol uses it, `SocketHandler` the protocol as the socket calls it. Both are typed by the protocol's messages.
 */
import type { Caller, UserCaller } from '../../access/caller.ts'
import type { JsonObject } from '../input/body.ts'
import type { MessageText } from './socket-message.ts'
import type { CloseCode, SocketServerMessage } from './socket-protocol.ts'

/** A message of any protocol. */
type AnyMessage = { readonly type: string }
/** The codes of a protocol's `error` message. */
export type ErrorCodeOf<Message> =
  Extract<Message, { readonly type: 'error' }> extends { readonly code: infer Code } ? Code : never

/** The members that a protocol adds to `auth_success` and `auth_refreshed`. */
type AuthDetails<Message> = Message extends { readonly type: 'auth_success' | 'auth_refreshed' }
  ? Omit<Message, 'type' | 'userId'>
  : never

/** A socket as a protocol uses it. `Message` is the union of the messages that the protocol sends. */
export interface Connection<Message extends AnyMessage = SocketServerMessage> {
  readonly id: string
  /** The authenticated caller; anonymous at first. */
  readonly caller: Caller
  readonly isOpen: boolean
  /** Bytes sent and not yet received by the client. */
  readonly buffered: number
  /** Sends a message, serialized or not. Does nothing once the socket is closing. */
  send(message: Message | MessageText<Message>): void
  /** The same for a binary frame. The bytes may be used again after the call. */
  sendBytes(bytes: Uint8Array): void
  error(code: ErrorCodeOf<Message>, message: string): void
  close(code: CloseCode, reason: string): void
  /** Marks the socket as in use: it no longer counts as pending. */
  markActive(): void
  /** Runs a task in the socket's queue: after earlier messages were processed and before later ones are. */
  enqueue(task: () => void | Promise<void>): Promise<void>
  /** Receives the messages published to a topic. */
  subscribe(topic: string): void
  unsubscribe(topic: string): void
}

/** A protocol on one socket. An exception in any of its functions is logged and closes the socket. */
export interface SocketHandler<Message extends AnyMessage = SocketServerMessage> {
  /** Rate limit in messages per second, without `ping` and `auth`. */
  readonly messageRate: number
  /** Unread bytes beyond which the socket is closed at once, if larger than the default: for large messages. */
  readonly backlogBytesMax?: number
  onOpen(): void | Promise<void>
  /** Throws for members of the first `auth` that are not valid, before the token is verified. */
  checkAuth?(message: JsonObject): void
  /** The message in a binary frame; null for an invalid one. Without this function every binary frame is invalid. */
  parseBytes?(bytes: Uint8Array): JsonObject | null
  /**
   * An `auth` message authenticated the caller, or authenticated it again. Returns the members of the response besides
   * the user id. Later messages wait until it is done.
   */
  onAuth(
    caller: UserCaller,
    isRefresh: boolean,
    message: JsonObject,
  ): AuthDetails<Message> | Promise<AuthDetails<Message>>
  /** The response to an `auth` has been sent. */
  afterAuth(isRefresh: boolean): void | Promise<void>
  /** Processes one message other than `auth` and `ping`; `type` is empty if absent, `chars` is the frame's length. */
  onMessage(type: string, message: JsonObject, chars: number): void | Promise<void>
  /** A message was dropped by the rate limit, after its `error` was sent. */
  onRateLimited?(type: string, message: JsonObject): void
  /** The client has received everything sent, after a backlog. */
  onDrain(): void
  onClose(): void
}
