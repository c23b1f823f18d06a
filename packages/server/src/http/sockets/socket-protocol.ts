/**
 * The wire format that all WebSockets share: messages of the socket layer, and close codes. Types and constants without
 * a dependency on the server, so that clients can import them. Every message is one JSON object in one text frame.
 */
import type { SocketErrorCodeOn } from '../../error-codes.ts'

/**
 * Authenticates the socket, or renews its authentication before the token expires. The first one is answered with
 * `auth_success`, later ones with `auth_refreshed`. Does not count against the message rate.
 *
 * @errors AUTH_FAILED AUTH_REFRESH_FAILED TOO_MANY_SOCKETS RATE_LIMITED
 */
export interface AuthMessage {
  readonly type: 'auth'
  /** An access token. */
  readonly token: string
}

/**
 * Keeps the connection alive; recommended every 30 seconds. Answered with `pong`. Does not count against the message
 * rate.
 */
export interface PingMessage {
  readonly type: 'ping'
}

/** Messages that the socket layer itself processes. */
export type SocketClientMessage = AuthMessage | PingMessage

/** The socket is authenticated. Sent once. */
export interface AuthSuccessMessage {
  readonly type: 'auth_success'
  /** The id of the user. */
  readonly userId: string
}

/** A later `auth` succeeded, or the role or the claims of the user changed. */
export interface AuthRefreshedMessage {
  readonly type: 'auth_refreshed'
  /** The id of the user. */
  readonly userId: string
}

/** Authentication failed or ended. An `error` with code `AUTH_FAILED` and close 4002 follow. */
export interface AuthErrorMessage {
  readonly type: 'auth_error'
  /** A sentence for developers. */
  readonly message: string
}

/** The answer to `ping`. */
export interface PongMessage {
  readonly type: 'pong'
}

/** A message was refused, or the socket is about to close. */
export interface ErrorMessage {
  readonly type: 'error'
  /** Why the message was refused or the socket closes. */
  readonly code: SocketErrorCodeOn<'socket'>
  /** A sentence for developers; it may change between versions. */
  readonly message: string
}

/** Messages that every socket may receive. Subscriptions and rooms add members to some of them. */
export type SocketServerMessage =
  | AuthSuccessMessage
  | AuthRefreshedMessage
  | AuthErrorMessage
  | PongMessage
  | ErrorMessage

/** Why the server closes a socket. Reconnect after all codes but 4000, 4002, 4003, 4004 and 4005. */
export const closeCodes = {
  /** An unexpected failure, which the server logs. */
  internal: 1011,
  /** The server restarts, or the room cannot be reached for now. Reconnect after a random delay. */
  restarting: 1012,
  /** A frame that is not a valid message, or a message that needs authentication. */
  badMessage: 4000,
  /** The socket neither authenticated nor subscribed in time. */
  authTimeout: 4001,
  /** The token, session or service key is invalid, expired or revoked. */
  authFailed: 4002,
  /** The join was denied, or the room is full. */
  joinDenied: 4003,
  /** Room code or an administrator removed the player. */
  kicked: 4004,
  /** The client sent `leave`, on this socket or another one of the same user. */
  left: 4005,
  /** No traffic for 45 seconds. */
  stale: 4007,
  /** The client did not read what it was sent: for 10 seconds, or more than 4 MiB (in rooms plus two states). */
  slowConsumer: 4008,
  /** The user has too many open sockets. */
  tooMany: 4009,
} as const

export type CloseCode = (typeof closeCodes)[keyof typeof closeCodes]
