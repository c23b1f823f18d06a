/**
 * The wire format of `GET /api/db/subscribe`: every message of live subscriptions and broadcasts. Types only, without a
 * dependency on the server, so that clients can import them.
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

/** A condition on a field, as in list requests. */
export type FilterTuple = readonly [field: string, operator: string, value: unknown]

/** Conditions of one group, at most 5; null for no condition. */
export type FilterGroup = readonly FilterTuple[] | null

/**
 * Subscribes to a channel: `dblive:{namespace}:{table}`, with `:{docId}` for one record, with `:{instanceId}` before
 * the table in dynamic namespaces, or `broadcast:{name}`. Replaces an earlier subscription of the same channel. A tag,
 * `#` and 1 to 32 letters, digits, `_` or `-` at the end of a table's channel, makes it a channel of its own, so that a
 * socket can have several subscriptions of a table with other filters. Broadcasts reach the channel without a tag.
 * Answered with `subscribed`; a socket has at most 100 channels.
 *
 * @errors INVALID_CHANNEL INVALID_FILTERS CHANNEL_ACCESS_DENIED NOT_AUTHENTICATED TOO_MANY_SUBSCRIPTIONS
 * FILTERS_TOO_LARGE RATE_LIMITED UNAVAILABLE
 */
export interface SubscribeMessage {
  readonly type: 'subscribe'
  /** The channel to subscribe to. */
  readonly channel: string
  /** Conditions that must all hold. */
  readonly filters?: FilterGroup
  /** Conditions of which at least one must hold. */
  readonly orFilters?: FilterGroup
  /** Another name of `filters`; send one of the two. */
  readonly filter?: FilterGroup
  /** Another name of `orFilters`; send one of the two. */
  readonly orFilter?: FilterGroup
  /** A `cursor` of an earlier message: the changes since then follow before new ones. */
  readonly since?: string | null
  /** Whether changes carry the record before them. Service keys only. */
  readonly previous?: boolean
  /** The fields that the records of changes have, with commas between them, as in a list; all where it is left out. */
  readonly fields?: string | null
}

/**
 * Ends a subscription. Answered with `unsubscribed`.
 *
 * @errors NOT_SUBSCRIBED RATE_LIMITED
 */
export interface UnsubscribeMessage {
  readonly type: 'unsubscribe'
  /** The channel that the message concerns. */
  readonly channel: string
}

/**
 * Replaces the filters of a subscription. A group that is left out stays, null clears it. Answered with
 * `filters_updated`.
 *
 * @errors NOT_SUBSCRIBED INVALID_FILTERS CHANNEL_ACCESS_DENIED NOT_AUTHENTICATED FILTERS_TOO_LARGE RATE_LIMITED
 * UNAVAILABLE
 */
export interface UpdateFiltersMessage {
  readonly type: 'update_filters'
  /** The channel that the message concerns. */
  readonly channel: string
  /** Conditions that must all hold. */
  readonly filters?: FilterGroup
  /** Conditions of which at least one must hold. */
  readonly orFilters?: FilterGroup
  /** Another name of `filters`; send one of the two. */
  readonly filter?: FilterGroup
  /** Another name of `orFilters`; send one of the two. */
  readonly orFilter?: FilterGroup
}

/**
 * Sends an event to all subscribers of a broadcast channel, if its `publish` rule permits. Not stored, not
 * acknowledged.
 *
 * @errors INVALID_CHANNEL INVALID_MESSAGE MESSAGE_TOO_LARGE CHANNEL_ACCESS_DENIED NOT_AUTHENTICATED RATE_LIMITED
 * UNAVAILABLE
 */
export interface BroadcastMessage {
  readonly type: 'broadcast'
  /** `broadcast:{name}`. */
  readonly channel: string
  /** 1 to 128 characters. */
  readonly event: string
  /** Any JSON of at most 16 KiB; null where it is left out. */
  readonly payload?: unknown
}

/** What a client sends over a subscription socket. */
export type SubscriptionClientMessage =
  | AuthMessage
  | SubscribeMessage
  | UnsubscribeMessage
  | UpdateFiltersMessage
  | BroadcastMessage
  | PingMessage

/** The socket is authenticated. Sent once; subscriptions made before it now belong to the user. */
export interface SubscriptionAuthSuccessMessage extends AuthSuccessMessage {
  /** Channels that the user may not subscribe to; their subscriptions have ended. Absent where there are none. */
  readonly revokedChannels?: readonly string[]
  /** Channels whose visible rows have changed: list them again. Absent where there are none. */
  readonly changedChannels?: readonly string[]
}

/** A later `auth` succeeded, or the role or the claims of the user changed. Subscriptions follow the new claims. */
export interface SubscriptionAuthRefreshedMessage extends AuthRefreshedMessage {
  /** Channels that the new claims deny; their subscriptions have ended. */
  readonly revokedChannels: readonly string[]
  /** Channels whose visible rows have changed: list them again. Absent where there are none. */
  readonly changedChannels?: readonly string[]
}

/**
 * The channel is subscribed to. Sent again with `recovered: false` where changes were lost or the configuration
 * changed.
 */
export interface SubscribedMessage {
  readonly type: 'subscribed'
  /** The channel that the message concerns. */
  readonly channel: string
  /** Whether filters are in force. */
  readonly serverFilter: boolean
  /** The position in the change log from which changes follow; absent on broadcast channels, which are not stored. */
  readonly cursor?: string
  /**
   * Whether all changes since `since` follow. If false, list again. Present with `since`, or where changes were lost.
   */
  readonly recovered?: boolean
}

/** New filters are in force for all changes after `cursor`. */
export interface FiltersUpdatedMessage {
  readonly type: 'filters_updated'
  /** The channel that the message concerns. */
  readonly channel: string
  /** Whether filters are in force. */
  readonly serverFilter: boolean
  /** The position in the change log behind this message, for `since`. */
  readonly cursor: string
}

/** The subscription has ended; no more messages of the channel follow. */
export interface UnsubscribedMessage {
  readonly type: 'unsubscribed'
  /** The channel that the message concerns. */
  readonly channel: string
}

/** A record as a read returns it, without hidden fields. */
export type RecordData = Readonly<Record<string, unknown>>

/** A row entered the subscriber's view (`added`), changed in it (`modified`) or left it (`removed`). */
export interface DbChangeMessage {
  readonly type: 'db_change'
  /** Equal to `changeType`; inside `batch_changes` only. */
  readonly event?: 'added' | 'modified' | 'removed'
  /** The channel that the message concerns. */
  readonly channel: string
  /** The name of the table. */
  readonly table: string
  /** What happened to the row in the subscriber's view. */
  readonly changeType: 'added' | 'modified' | 'removed'
  /** The id of the record. */
  readonly docId: string
  /** The record after the change, with the fields of the subscription; null for `removed`. */
  readonly data: RecordData | null
  /** The record before the change, null for an insert; with `previous: true` only. */
  readonly previous?: RecordData | null
  /**
   * The version of the row after the change: greater than every earlier one of a row with this id. Of `removed` it is
   * that of the change that removed it. A row that entered or left the view because another table changed has its own,
   * or a greater one that is less than that of its next change.
   */
  readonly version: number
  /** When the change was committed, RFC 3339 in UTC with milliseconds. */
  readonly timestamp: string
  /** The position behind this change, for `since`. */
  readonly cursor: string
}

/** The changes of one request that made 10 or more. A very large request is sent as several of these. */
export interface BatchChangesMessage {
  readonly type: 'batch_changes'
  /** The channel that the message concerns. */
  readonly channel: string
  /** In the order in which they happened. */
  readonly changes: readonly DbChangeMessage[]
  /** The number of `changes`. */
  readonly total: number
  /** The position behind the last change, for `since`. */
  readonly cursor: string
}

/** More changed than can be reported row by row: list the channel again. Changes after `cursor` follow as usual. */
export interface ResyncMessage {
  readonly type: 'resync'
  /** The channel that the message concerns. */
  readonly channel: string
  /** The position in the change log behind this message, for `since`. */
  readonly cursor: string
}

/** An event that a server or a client broadcast to the channel. Delivered at most once. */
export interface BroadcastEventMessage {
  readonly type: 'broadcast_event'
  /** The channel that the message concerns. */
  readonly channel: string
  /** The name of the event. */
  readonly event: string
  /** Any JSON. */
  readonly payload: unknown
}

/** A message was refused, a channel is no longer permitted, or the socket is about to close. */
export interface SubscriptionErrorMessage extends Omit<ErrorMessage, 'code'> {
  /** Why the message was refused or the socket closes. */
  readonly code: SocketErrorCodeOn<'subscriptions'>
  /** The channel that the refused message names, or that ended because a changed configuration denies it. */
  readonly channel?: string
  /** The status with which HTTP refuses the same. Present where a message or a channel is refused. */
  readonly status?: number
  /** The slug with which HTTP refuses the same. Present with `status`. */
  readonly slug?:
    | 'invalid-input'
    | 'authentication-required'
    | 'access-denied'
    | 'not-found'
    | 'rate-limited'
    | 'unavailable'
}

/** What the server sends over a subscription socket. */
export type SubscriptionServerMessage =
  | SubscriptionAuthSuccessMessage
  | SubscriptionAuthRefreshedMessage
  | AuthErrorMessage
  | SubscribedMessage
  | FiltersUpdatedMessage
  | UnsubscribedMessage
  | DbChangeMessage
  | BatchChangesMessage
  | ResyncMessage
  | BroadcastEventMessage
  | SubscriptionErrorMessage
  | PongMessage
