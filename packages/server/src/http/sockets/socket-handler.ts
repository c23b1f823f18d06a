/**
 * The port between a socket and what is exchanged over it: what a protocol such as subscriptions or rooms may do with
 * its socket (`Connection`), and what the socket calls (`Conversation`). Both are typed by the protocol's messages.
 */
import type { Caller, UserCaller } from '../../access/caller.ts'
import type { JsonObject } from '../input/body.ts'
import type { MessageText } from './socket-message.ts'
import type { CloseCode, SocketServerMessage } from './socket-protocol.ts'

/** A message of any protocol: each has an `error` with the codes that it sends. */
type AnyMessage = { readonly type: string }
export type ErrorCodeOf<Message> =
  Extract<Message, { readonly type: 'error' }> extends { readonly code: infer Code } ? Code : never

/** The members that a protocol adds to `auth_success` and `auth_refreshed`. */
type AuthDetails<Message> = Message extends { readonly type: 'auth_success' | 'auth_refreshed' }
  ? Omit<Message, 'type' | 'userId'>
  : never

/** What a conversation does with its socket. `Message` are the messages that its protocol sends. */
export interface Connection<Message extends AnyMessage = SocketServerMessage> {
  readonly id: string
  /** Who has been proved to be there; anonymous at first. */
  readonly caller: Caller
  readonly isOpen: boolean
  /** Bytes sent that the other side has not taken yet. */
  readonly buffered: number
  /** Sends a message, or one that is serialized already. Does nothing once the socket is closing. */
  send(message: Message | MessageText<Message>): void
  error(code: ErrorCodeOf<Message>, message: string): void
  close(code: CloseCode, reason: string): void
  /** The socket has shown what it is for: it no longer counts as pending. */
  markActive(): void
  /** Does something once the messages that came before have been dealt with; later ones wait until it is done. */
  enqueue(task: () => void | Promise<void>): Promise<void>
  /** Receives what is published to a topic. */
  subscribe(topic: string): void
  unsubscribe(topic: string): void
}

/** One kind of exchange over one socket. Whatever its functions throw is logged and closes the socket. */
export interface SocketHandler<Message extends AnyMessage = SocketServerMessage> {
  /** Messages a second, pings and auth left out. */
  readonly messageRate: number
  /** Bytes it may be behind before it is closed at once, where one message can be larger than most backlogs. */
  readonly backlogBytesMax?: number
  /** The socket has been opened. */
  onOpen(): void | Promise<void>
  /**
   * The caller is known, or known anew, by this message. Gives what the answer says besides the user's id; messages
   * wait until it is done.
   */
  onAuth(
    caller: UserCaller,
    isRefresh: boolean,
    message: JsonObject,
  ): AuthDetails<Message> | Promise<AuthDetails<Message>>
  /** The answer to an `auth` has been sent. */
  afterAuth(isRefresh: boolean): void | Promise<void>
  /** A message of any type but `auth` and `ping`, one at a time, and its length; an empty type where none is given. */
  onMessage(type: string, message: JsonObject, chars: number): void | Promise<void>
  /** One too many, which is not dealt with, beyond the `error` that says so. */
  onRateLimited?(type: string, message: JsonObject): void
  /** Everything sent has been taken by the other side, after it had not been. */
  onDrain(): void
  onClose(): void
}
