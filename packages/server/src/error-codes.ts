/**
 * The error codes a client can meet, over HTTP (slugs) and over WebSockets (codes). Plain data without imports, so that
 * clients can use it; `errors.ts` builds the errors. `docs/reference/errors.md` is generated from here.
 */

/**
 * Whether the same request may be sent again.
 *
 * - `no`: it fails again until the request, the data or the permissions change.
 * - `after-delay`: nothing was changed; send it again after `Retry-After`, or after a moment.
 * - `after-refresh`: nothing was changed; send it again with a new access token.
 * - `if-idempotent`: the outcome is unknown; repeat reads, and writes that carry an `Idempotency-Key`.
 */
export type Retry = 'no' | 'after-delay' | 'after-refresh' | 'if-idempotent'

interface HttpErrorEntry {
  readonly status: number
  /** One sentence for the reference. */
  readonly meaning: string
  readonly retry: Retry
}

/** Every `slug` of an HTTP error body. */
export const httpErrors = {
  'bad-request': {
    status: 400,
    meaning: 'The request is malformed as a whole: a body that is not JSON, or parameters that exclude each other.',
    retry: 'no',
  },
  'invalid-input': {
    status: 400,
    meaning: 'Fields or parameters are invalid; `data` names each of them with a code and a message.',
    retry: 'no',
  },
  'query-timeout': {
    status: 400,
    meaning: 'The query took longer than its time limit, and was ended. Narrow it with a filter, or add an index.',
    retry: 'no',
  },
  'authentication-required': {
    status: 401,
    meaning: 'The request carries no access token, and needs one.',
    retry: 'no',
  },
  'invalid-credentials': {
    status: 401,
    meaning: 'The password, code or ticket is wrong. The response does not reveal whether the account exists.',
    retry: 'no',
  },
  'invalid-service-key': { status: 401, meaning: 'The service key is unknown or was revoked.', retry: 'no' },
  'invalid-token': {
    status: 401,
    meaning: 'The token is malformed, was issued by another server, or its session has ended. Sign in again.',
    retry: 'no',
  },
  'token-expired': {
    status: 401,
    meaning: 'The access token has expired. Refresh the session and send the request again.',
    retry: 'after-refresh',
  },
  'access-denied': {
    status: 403,
    meaning: 'An access rule, a role or the scope of the service key does not permit the request.',
    retry: 'no',
  },
  'account-disabled': {
    status: 403,
    meaning: 'The account is disabled. Only callers that have proved to own it receive this error.',
    retry: 'no',
  },
  'no-dashboard-role': {
    status: 403,
    meaning: 'The password is right, but the user has no dashboard role. An owner gives one.',
    retry: 'no',
  },
  'room-full': {
    status: 403,
    meaning: 'All seats of the room are taken by connected players.',
    retry: 'after-delay',
  },
  'viewing-as-user': {
    status: 403,
    meaning: 'The session of the dashboard views as a user, and only reads. Stop viewing, and send the request again.',
    retry: 'no',
  },
  'sign-in-again': {
    status: 403,
    meaning: 'The request needs a recent sign-in; the session began too long ago.',
    retry: 'no',
  },
  'not-found': {
    status: 404,
    meaning: 'The resource does not exist, or the caller may not know that it does.',
    retry: 'no',
  },
  'method-not-allowed': {
    status: 405,
    meaning: 'The path exists, but not with this method. `Allow` lists the methods it has.',
    retry: 'no',
  },
  conflict: {
    status: 409,
    meaning: 'The request conflicts with stored data, such as an id or a unique value that is taken.',
    retry: 'no',
  },
  'object-changed': {
    status: 412,
    meaning: 'The file has changed since its URL was signed. Request a new URL.',
    retry: 'no',
  },
  'precondition-failed': {
    status: 412,
    meaning: 'The resource does not match `If-Match` or another required header. Read it again, then decide.',
    retry: 'no',
  },
  'payload-too-large': {
    status: 413,
    meaning: 'The request body, or a part of it, exceeds its limit. The message states the limit in bytes.',
    retry: 'no',
  },
  'quota-exceeded': {
    status: 413,
    meaning: 'The files of a bucket or user, a vector index or the writes of a job would exceed their maximum.',
    retry: 'no',
  },
  'unsupported-media-type': {
    status: 415,
    meaning: 'The endpoint does not accept this `Content-Type` or `Content-Encoding`.',
    retry: 'no',
  },
  'range-not-satisfiable': {
    status: 416,
    meaning: 'The requested range lies outside the file. `Content-Range` states its size.',
    retry: 'no',
  },
  'rate-limited': {
    status: 429,
    meaning: 'Too many requests. `Retry-After` states the seconds to wait.',
    retry: 'after-delay',
  },
  'client-closed-request': {
    status: 499,
    meaning: 'The client closed the connection before the response. It appears in logs and metrics only.',
    retry: 'if-idempotent',
  },
  internal: {
    status: 500,
    meaning: 'An unexpected failure. The server logs its cause under the `X-Request-Id` of the response.',
    retry: 'if-idempotent',
  },
  'hook-failed': {
    status: 500,
    meaning:
      'A hook of the application threw an error, took too long, or returned what cannot be stored. Nothing was stored.',
    retry: 'no',
  },
  'function-timeout': {
    status: 504,
    meaning: 'The function did not end within its time limit. It may have had some of its effects.',
    retry: 'if-idempotent',
  },
  'function-crashed': {
    status: 503,
    meaning: 'The process that ran the function ended. The function may have had some of its effects.',
    retry: 'if-idempotent',
  },
  'push-not-configured': { status: 503, meaning: 'The server has no push credentials.', retry: 'no' },
  unavailable: {
    status: 503,
    meaning: 'The server is shutting down, overloaded, or cannot reach its database, Redis or object store.',
    retry: 'after-delay',
  },
} as const satisfies Readonly<Record<string, HttpErrorEntry>>

export type ErrorSlug = keyof typeof httpErrors

interface SocketErrorEntry {
  /** Which sockets send it: `socket` for all of them. */
  readonly on: 'socket' | 'subscriptions' | 'rooms'
  readonly meaning: string
  readonly retry: Retry
  /** The code that the socket is closed with after the error; absent where it stays open. */
  readonly closes?: number
}

/** Every `code` of an `error`, `action_error` or `signal_error` message. */
export const socketErrors = {
  AUTH_FAILED: {
    on: 'socket',
    meaning: 'The first `auth` failed, the token expired, or the session or service key ended.',
    retry: 'after-refresh',
    closes: 4002,
  },
  AUTH_REFRESH_FAILED: {
    on: 'socket',
    meaning: 'A later `auth` failed or names another user; the previous authentication stays in force.',
    retry: 'after-refresh',
  },
  AUTH_TIMEOUT: {
    on: 'socket',
    meaning: 'The socket neither authenticated nor subscribed in time (5 seconds unless the room configures another).',
    retry: 'after-delay',
    closes: 4001,
  },
  INVALID_JSON: {
    on: 'socket',
    meaning: 'The frame is not a JSON object in UTF-8 text, is nested deeper than 64 levels, or is too large.',
    retry: 'no',
    closes: 4000,
  },
  NOT_AUTHENTICATED: {
    on: 'socket',
    meaning: 'The message needs an authenticated user. Send `auth` first.',
    retry: 'no',
    closes: 4000,
  },
  RATE_LIMITED: {
    on: 'socket',
    meaning: 'Too many messages, subscriptions or pending commands. The message was not processed.',
    retry: 'after-delay',
  },
  TOO_MANY_SOCKETS: {
    on: 'socket',
    meaning: 'The user has the maximum number of open sockets.',
    retry: 'after-delay',
    closes: 4009,
  },
  UNAVAILABLE: {
    on: 'socket',
    meaning: 'The database or another node cannot be reached, or too many clients are recovering.',
    retry: 'after-delay',
  },
  UNKNOWN_TYPE: { on: 'socket', meaning: 'The `type` of the message is missing or unknown.', retry: 'no' },

  CHANNEL_ACCESS_DENIED: {
    on: 'subscriptions',
    meaning: 'A rule or the scope of the service key does not permit this use of the channel.',
    retry: 'no',
  },
  FILTERS_TOO_LARGE: {
    on: 'subscriptions',
    meaning: 'The filters of all subscriptions of the user or address exceed their limit in characters.',
    retry: 'no',
  },
  INVALID_CHANNEL: {
    on: 'subscriptions',
    meaning: 'The channel is malformed, or names a table or broadcast channel that does not exist.',
    retry: 'no',
  },
  INVALID_FILTERS: {
    on: 'subscriptions',
    meaning: 'The filters or `fields` are malformed, too many, or name an unknown or hidden field.',
    retry: 'no',
  },
  INVALID_MESSAGE: {
    on: 'subscriptions',
    meaning: 'The `event` of a `broadcast` is missing or too long.',
    retry: 'no',
  },
  MESSAGE_TOO_LARGE: {
    on: 'subscriptions',
    meaning: 'The `payload` of a `broadcast` is larger than 16 KiB.',
    retry: 'no',
  },
  NOT_SUBSCRIBED: { on: 'subscriptions', meaning: 'The socket is not subscribed to the channel.', retry: 'no' },
  TOO_MANY_SUBSCRIPTIONS: {
    on: 'subscriptions',
    meaning: 'The user or address has the maximum number of subscriptions over all sockets.',
    retry: 'no',
  },

  ACTION_DENIED: { on: 'rooms', meaning: 'The rule `access.action` does not permit the action.', retry: 'no' },
  ACTION_FAILED: {
    on: 'rooms',
    meaning: 'The handler threw an error, or its result or messages exceed their limits. No state was changed.',
    retry: 'no',
  },
  ACTION_TIMEOUT: {
    on: 'rooms',
    meaning: 'The handler exceeded `actionTimeout`. No state was changed.',
    retry: 'no',
  },
  INVALID_ACTION: {
    on: 'rooms',
    meaning: 'A `send` without a valid `actionType` or `requestId`.',
    retry: 'no',
  },
  INVALID_SIGNAL: { on: 'rooms', meaning: 'A member of the `signal` message is invalid.', retry: 'no' },
  INVALID_STATE: {
    on: 'rooms',
    meaning: 'The handler assigned a value that is not JSON or is too deep, or a member state is too large.',
    retry: 'no',
  },
  JOIN_DENIED: {
    on: 'rooms',
    meaning: 'The rule `access.join` or the handler `onJoin` refused the user, or the room could not be created.',
    retry: 'no',
    closes: 4003,
  },
  MEMBER_NOT_FOUND: { on: 'rooms', meaning: 'The member that `to` names is not in the room.', retry: 'no' },
  NOT_JOINED: { on: 'rooms', meaning: 'The socket has not joined the room. Send `join` first.', retry: 'no' },
  NO_HANDLER: { on: 'rooms', meaning: 'The room has no action of this name.', retry: 'no' },
  ROOM_FULL: { on: 'rooms', meaning: 'All seats of the room are taken.', retry: 'after-delay', closes: 4003 },
  SIGNAL_DENIED: { on: 'rooms', meaning: 'The rule `access.signal` does not permit the signal.', retry: 'no' },
  STATE_TOO_LARGE: {
    on: 'rooms',
    meaning: 'The action would grow a state beyond `maxStateSize`. No state was changed.',
    retry: 'no',
  },
  UNAUTHENTICATED: {
    on: 'rooms',
    meaning: 'The socket was opened with a service key; rooms are for users.',
    retry: 'no',
  },
} as const satisfies Readonly<Record<string, SocketErrorEntry>>

export type SocketErrorCode = keyof typeof socketErrors

/** The codes that sockets of one kind send, those of all sockets included. */
export type SocketErrorCodeOn<Kind extends SocketErrorEntry['on']> = {
  [Code in SocketErrorCode]: (typeof socketErrors)[Code]['on'] extends Kind | 'socket' ? Code : never
}[SocketErrorCode]
