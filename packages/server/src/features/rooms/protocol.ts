/**
 * The wire format of `GET /api/room`, protocol version 2: every message of rooms. Types only, without a dependency on
 * the server, so that clients can import them.
 */
import type { SocketErrorCodeOn } from '../../error-codes.ts'
import type {
  AuthErrorMessage,
  AuthMessage,
  AuthRefreshedMessage,
  AuthSuccessMessage,
  ErrorMessage,
  PingMessage,
  PongMessage,
} from '../../http/sockets/socket-protocol.ts'

/**
 * `resume`: `join` may recover missed deltas. `multi`: the server may send several messages in one frame, as an array.
 * `batch`: the server sends the answers to actions just before the deltas, every 50 milliseconds, instead of at once.
 */
export type RoomCapability = 'resume' | 'multi' | 'batch'

/**
 * How messages are encoded. `json`: every message is JSON in a text frame. `msgpack`: the most frequent messages are
 * MessagePack in binary frames as well, and all others remain JSON. `multi` is not granted together with `msgpack`.
 */
export type RoomEncoding = 'json' | 'msgpack'

/**
 * The first elements of the arrays that binary frames consist of, with the encoding `msgpack`.
 *
 * - `paths`, `[0, path, …]`, from the server: these paths have the numbers 0, 1, … Replaces all earlier numbers.
 * - `sharedDelta`, `[1, version, path, value, …]`, from the server: a `shared_delta`. A path is a number, or text,
 *   which gives the path the next number.
 * - `send`, `[2, actionType, requestId, payload]`, from the client: a `send`. Answered in JSON.
 */
export const packedKinds = { paths: 0, sharedDelta: 1, send: 2 } as const

/**
 * Authenticates the socket, or renews its authentication before the token expires.
 *
 * @errors AUTH_FAILED AUTH_REFRESH_FAILED TOO_MANY_SOCKETS RATE_LIMITED
 */
export interface RoomAuthMessage extends AuthMessage {
  /** Optional capabilities of the client; read from the first `auth` only. Unknown names are ignored. */
  readonly caps?: readonly RoomCapability[]
  /** Read from the first `auth` only. Default `json`; an unknown one is refused with `AUTH_FAILED`. */
  readonly encoding?: RoomEncoding
}

/**
 * Joins the room. Answered with `sync`, or with `resumed` where the capability `resume` was granted and all missed
 * deltas are available. States that a client sends are ignored.
 *
 * @errors JOIN_DENIED ROOM_FULL NOT_AUTHENTICATED UNAUTHENTICATED RATE_LIMITED UNAVAILABLE
 */
export interface JoinMessage {
  readonly type: 'join'
  /** The `epoch` of the last `sync` or `resumed`. */
  readonly epoch?: string
  /** The last version of the shared state that the client has applied. */
  readonly lastSharedVersion?: number
  /** The last version of the player state that the client has applied. */
  readonly lastPlayerVersion?: number
}

/**
 * Runs an action of the room. Answered with `action_result` or `action_error`; without a valid `requestId` with an
 * `error`. Sending the same `requestId` again within 60 seconds returns the kept answer instead of running the action
 * again.
 *
 * @errors INVALID_ACTION NOT_JOINED ACTION_DENIED NO_HANDLER ACTION_FAILED ACTION_TIMEOUT INVALID_STATE
 * STATE_TOO_LARGE NOT_AUTHENTICATED UNAUTHENTICATED RATE_LIMITED UNAVAILABLE
 */
export interface SendMessage {
  readonly type: 'send'
  /** The name of the action: 1 to 128 characters. */
  readonly actionType: string
  /** Any JSON; `{}` where it is left out. */
  readonly payload?: unknown
  /** Unique per request: 1 to 128 characters. */
  readonly requestId: string
}

/**
 * Leaves the room at once, with all sockets of the user. They are closed with 4005.
 *
 * @errors NOT_JOINED NOT_AUTHENTICATED UNAUTHENTICATED RATE_LIMITED
 */
export interface LeaveMessage {
  readonly type: 'leave'
}

/**
 * Sets the presence that other members see: any JSON of at most 4,096 bytes. Sent to them as `member_state`.
 *
 * @errors NOT_JOINED INVALID_STATE NOT_AUTHENTICATED UNAUTHENTICATED RATE_LIMITED
 */
export interface SetMemberStateMessage {
  readonly type: 'member_state'
  /** Any JSON; `{}` where it is left out or null. */
  readonly state?: unknown
}

/**
 * Sends an event to other members, if the rule `access.signal` permits.
 *
 * @errors INVALID_SIGNAL NOT_JOINED SIGNAL_DENIED MEMBER_NOT_FOUND NOT_AUTHENTICATED UNAUTHENTICATED RATE_LIMITED
 * UNAVAILABLE
 */
export interface SendSignalMessage {
  readonly type: 'signal'
  /** 1 to 128 characters. */
  readonly event: string
  /** Any JSON; null where it is left out. */
  readonly payload?: unknown
  /** The member that receives it; all other members where it is left out or null. */
  readonly to?: string | null
  /** An older name of `to`. */
  readonly memberId?: string | null
  /** Whether the sending socket receives the signal too. Default false. */
  readonly includeSelf?: boolean
  /** Requests `signal_sent` or `signal_error` as an answer: 1 to 128 characters. */
  readonly requestId?: string | null
}

/** What a client sends over a room socket. */
export type RoomClientMessage =
  | RoomAuthMessage
  | JoinMessage
  | SendMessage
  | LeaveMessage
  | SetMemberStateMessage
  | SendSignalMessage
  | PingMessage

/** The socket is authenticated. Sent once. */
export interface RoomAuthSuccessMessage extends AuthSuccessMessage {
  /** Identifies this socket in `signal` metadata. */
  readonly connectionId: string
  /** The capabilities that were granted; absent where none was requested. */
  readonly caps?: readonly RoomCapability[]
  /** The encoding, unless it is `json`. */
  readonly encoding?: RoomEncoding
}

/** A later `auth` succeeded, or the role or the claims of the user changed. */
export interface RoomAuthRefreshedMessage extends AuthRefreshedMessage {
  /** Identifies this socket in `signal` metadata. */
  readonly connectionId: string
}

/** A state: a JSON object. */
export type State = Readonly<Record<string, unknown>>

/**
 * Changes of a state: dot paths of at most 5 levels to new values, null deletes. Apply the entries in order, each to
 * the state as the version before left it.
 */
export type StateDelta = Readonly<Record<string, unknown>>

/** The complete state. Sent after `join`, and whenever a client cannot be brought up to date by deltas. */
export interface SyncMessage {
  readonly type: 'sync'
  /** The state that all players see. */
  readonly sharedState: State
  /** The version of the shared state. */
  readonly sharedVersion: number
  /** The state of this player. */
  readonly playerState: State
  /** The version of the player state. */
  readonly playerVersion: number
  /** Versions are comparable within an epoch; it changes when the room is loaded again. */
  readonly epoch: string
}

/** The client's copy is valid; the deltas that it missed follow. With the capability `resume` only. */
export interface ResumedMessage {
  readonly type: 'resumed'
  /** Versions are comparable within an epoch; it changes when the room is loaded again. */
  readonly epoch: string
  /** The version of the shared state after the deltas that follow. */
  readonly sharedVersion: number
  /** The version of the player state after the deltas that follow. */
  readonly playerVersion: number
}

/** The shared state changed. Changes are collected and sent every 50 milliseconds. */
export interface SharedDeltaMessage {
  readonly type: 'shared_delta'
  /** The changes since the version before. */
  readonly delta: StateDelta
  /** The version after the delta: one more than before. */
  readonly version: number
}

/** The state of this player changed. */
export interface PlayerDeltaMessage {
  readonly type: 'player_delta'
  /** The changes since the version before. */
  readonly delta: StateDelta
  /** The version after the delta: one more than before. */
  readonly version: number
}

/** The action succeeded. Sent to the socket that sent it. */
export interface ActionResultMessage {
  readonly type: 'action_result'
  /** The `requestId` of the request. */
  readonly requestId: string
  /** What the handler returned; null where that is not JSON. */
  readonly result: unknown
  /** The name of the action. */
  readonly actionType: string
}

/** The action was refused or failed, and changed no state. Sent to the socket that sent it. */
export interface ActionErrorMessage {
  readonly type: 'action_error'
  /** The `requestId` of the request. */
  readonly requestId: string
  /** As it was sent; null where it was left out. */
  readonly actionType: unknown
  /** Why the message was refused. */
  readonly code: SocketErrorCodeOn<'rooms'>
  /** The message of the error that the handler threw, or a sentence for developers. */
  readonly message: string
}

/** Room code sent a message to all players or to this one. */
export interface RoomMessage {
  readonly type: 'message'
  /** The name that room code gave the message. */
  readonly messageType: string
  /** Any JSON; null where the code gave none. */
  readonly data: unknown
}

/** Room code or an administrator removed the player. Close 4004 follows. */
export interface KickedMessage {
  readonly type: 'kicked'
}

/** A user in the room, whatever the number of its sockets. */
export interface RoomMember {
  /** The id of the user. */
  readonly memberId: string
  /** The presence that the member set. */
  readonly state: unknown
}

export interface RoomOccupancyCounts {
  /** Users with an open socket. */
  readonly activeMembers: number
  /** Open sockets of all users. */
  readonly activeConnections: number
}

/** All members. Sent after `join`, and soon after members or sockets came or went; less often in large rooms. */
export interface MembersSyncMessage {
  readonly type: 'members_sync'
  /** Users and sockets in the room. */
  readonly occupancy: RoomOccupancyCounts
  /** All users in the room. */
  readonly members: readonly RoomMember[]
}

/** A user joined. A second socket or a reconnect is not a join. */
export interface MemberJoinMessage {
  readonly type: 'member_join'
  /** The id of the user. */
  readonly memberId: string
  /** The presence of the member: any JSON. */
  readonly state: unknown
}

/** A user left. */
export interface MemberLeaveMessage {
  readonly type: 'member_leave'
  /** The id of the user. */
  readonly memberId: string
  /** `disconnected`: the last socket closed, and none came back within `reconnectGrace`. */
  readonly reason: 'left' | 'kicked' | 'disconnected'
}

/** A member set its presence. */
export interface MemberStateMessage {
  readonly type: 'member_state'
  /** The id of the user. */
  readonly memberId: string
  /** The presence of the member: any JSON. */
  readonly state: unknown
}

export interface SignalMeta {
  /** The member that sent the signal. */
  readonly memberId: string
  /** The id of the user. */
  readonly userId: string
  /** The socket that sent the signal. */
  readonly connectionId: string
  /** RFC 3339 in UTC with milliseconds. */
  readonly sentAt: string
  /** Whether a server sent it instead of a member. */
  readonly serverSent: boolean
}

/** A member sent a signal. Delivered at most once. */
export interface SignalMessage {
  readonly type: 'signal'
  /** The name of the event. */
  readonly event: string
  /** Any JSON. */
  readonly payload: unknown
  /** The member that sent the signal. */
  readonly memberId: string
  /** Where the signal comes from. */
  readonly meta: SignalMeta
}

/** The signal was accepted. Sent where `signal` carried a `requestId`. */
export interface SignalSentMessage {
  readonly type: 'signal_sent'
  /** The `requestId` of the request. */
  readonly requestId: string
}

/** The signal was refused. Sent where `signal` carried a `requestId`. */
export interface SignalErrorMessage {
  readonly type: 'signal_error'
  /** The `requestId` of the request. */
  readonly requestId: string
  /** Why the message was refused. */
  readonly code: SocketErrorCodeOn<'rooms'>
  /** A sentence for developers; it may change between versions. */
  readonly message: string
}

/** A message was refused, or the socket is about to close. */
export interface RoomErrorMessage extends Omit<ErrorMessage, 'code'> {
  /** Why the message was refused. */
  readonly code: SocketErrorCodeOn<'rooms'>
}

/** What the server sends over a room socket. */
export type RoomServerMessage =
  | RoomAuthSuccessMessage
  | RoomAuthRefreshedMessage
  | AuthErrorMessage
  | SyncMessage
  | ResumedMessage
  | SharedDeltaMessage
  | PlayerDeltaMessage
  | ActionResultMessage
  | ActionErrorMessage
  | RoomMessage
  | KickedMessage
  | MembersSyncMessage
  | MemberJoinMessage
  | MemberLeaveMessage
  | MemberStateMessage
  | SignalMessage
  | SignalSentMessage
  | SignalErrorMessage
  | RoomErrorMessage
  | PongMessage
