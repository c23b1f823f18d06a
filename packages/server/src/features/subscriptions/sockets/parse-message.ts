/** Reads the messages of clients: what a socket received becomes one of the protocol's messages, or an error. */
import type { JsonObject } from '../../../http/input/body.ts'
import type { SocketClientMessage } from '../../../http/sockets/socket-protocol.ts'
import type { BroadcastMessage, SubscribeMessage, SubscriptionClientMessage, UnsubscribeMessage } from '../protocol.ts'
import { SubscriptionError } from './subscription-error.ts'

/** Messages that this layer processes; the socket layer processes the others. */
type OwnMessage = Exclude<SubscriptionClientMessage, SocketClientMessage>

/** Filter groups as received, not validated; undefined where a group is left out. */
export interface ReceivedFilters {
  readonly filters: unknown
  readonly orFilters: unknown
}

/** A `subscribe` as received. The channel, the filters and the fields are validated against the table. */
export interface ReceivedSubscribe extends ReceivedFilters, Pick<SubscribeMessage, 'type' | 'channel'> {
  /** Null to begin now; the empty text, which is no cursor, for what is not text. */
  readonly since: string | null
  readonly previous: boolean
  /** Undefined or null for all. */
  readonly fields: unknown
}

export interface ReceivedUpdate extends ReceivedFilters {
  readonly type: 'update_filters'
  readonly channel: string
}

/** A `broadcast` as received; `event` and `payload` are not validated. */
export type ReceivedBroadcast = Pick<BroadcastMessage, 'type' | 'channel'> & {
  readonly event: unknown
  readonly payload: unknown
}

export type ReceivedMessage = ReceivedSubscribe | UnsubscribeMessage | ReceivedUpdate | ReceivedBroadcast

/** The channel that a message names; the empty text, which is no channel, for what is not text. */
const channelOf = ({ channel }: JsonObject): string => (typeof channel === 'string' ? channel : '')

/** The groups of a message, each under either of its names. Throws `INVALID_FILTERS` for both names at once. */
function filtersOf(message: JsonObject): ReceivedFilters {
  const either = (name: string, alias: string): unknown => {
    if (message[name] !== undefined && message[alias] !== undefined)
      throw new SubscriptionError('INVALID_FILTERS', `${alias} is another name of ${name}; send one of the two`)
    return message[name] === undefined ? message[alias] : message[name]
  }
  return { filters: either('filters', 'filter'), orFilters: either('orFilters', 'orFilter') }
}

const sinceOf = ({ since }: JsonObject): string | null =>
  since === undefined || since === null ? null : typeof since === 'string' ? since : ''

const parsers: { readonly [Type in OwnMessage['type']]: (message: JsonObject) => ReceivedMessage & { type: Type } } = {
  subscribe: (message) => ({
    type: 'subscribe',
    channel: channelOf(message),
    ...filtersOf(message),
    since: sinceOf(message),
    previous: message.previous === true,
    fields: message.fields,
  }),
  unsubscribe: (message) => ({ type: 'unsubscribe', channel: channelOf(message) }),
  update_filters: (message) => ({ type: 'update_filters', channel: channelOf(message), ...filtersOf(message) }),
  broadcast: (message) => ({
    type: 'broadcast',
    channel: channelOf(message),
    event: message.event,
    payload: message.payload ?? null,
  }),
}

const isOwnType = (type: string): type is OwnMessage['type'] => Object.hasOwn(parsers, type)

/** Null for an unknown type. Throws `SubscriptionError` for a message that contradicts itself. */
export const parseClientMessage = (type: string, message: JsonObject): ReceivedMessage | null =>
  isOwnType(type) ? parsers[type](message) : null
