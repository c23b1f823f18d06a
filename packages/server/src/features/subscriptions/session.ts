/**
 * The subscriptions of one socket: handles its messages, checks access (`channel-access`), and joins subscribers to
 * queries (`delivery`). `http/socket` owns the connection and authentication.
 */
import type { Log } from '../../base/log.ts'
import { EngineError } from '../../engines/sql/error.ts'
import { ApiError } from '../../errors.ts'
import type { JsonObject } from '../../http/input/body.ts'
import { type Connection, type Conversation, closeCodes } from '../../http/sockets/socket.ts'
import {
  broadcastEventCharsMax,
  broadcastPayloadBytesMax,
  subscriptionMessageRate,
  subscriptionsPerSocketMax,
} from '../../limits/subscriptions.ts'
import { type Broadcasts, broadcastTopic, isBroadcast } from './broadcast.ts'
import type { Budget } from './budget.ts'
import type { ChannelAccess, Filters, SubscriptionOptions } from './channel-access.ts'
import type { Delivery, Joined } from './delivery.ts'
import { createSubscriber, type Subscriber } from './subscribers.ts'
import { SubscriptionError } from './subscription-error.ts'
import { queryKey } from './subscription-query.ts'

interface Subscription {
  /** Null for a broadcast channel. */
  readonly subscriber: Subscriber | null
  options: SubscriptionOptions
  /** Of its current query. */
  key: string
  /** Returns its part of the budget. */
  release: () => void
}

export interface SessionDeps {
  readonly access: ChannelAccess
  readonly delivery: Delivery
  readonly broadcasts: Broadcasts
  readonly budget: Budget
  readonly log: Log
}

export interface Session extends Conversation {
  /** Evaluates the access of every subscription again, and reports to the client what has changed. */
  reset(): Promise<void>
}

interface Reviewed {
  /** Channels that the caller may no longer subscribe to. */
  readonly revoked: readonly string[]
  /** Channels that show other rows now and have to be listed again. */
  readonly changed: readonly string[]
}

/** Called with a channel whose query is replaced, between the events of the two. */
type OnChanged = (channel: string, cursor: string) => void

const noFilters: SubscriptionOptions = { filters: null, orFilters: null, previous: false }

const isNothing = (group: unknown): boolean => group === null || (Array.isArray(group) && group.length === 0)

/** Whether any filter is in force. */
const hasFilters = ({ filters, orFilters }: Filters): boolean => !isNothing(filters) || !isNothing(orFilters)

const charsOf = (options: Filters): number =>
  hasFilters(options) ? JSON.stringify([options.filters, options.orFilters]).length : 0

/** The channel of a message; empty, which is not a channel, where it is not a string. */
const channelOf = ({ channel }: JsonObject): string => (typeof channel === 'string' ? channel : '')

/**
 * The filter groups of a message, each under either of its names (`filters`, or `filter` as in requests); undefined
 * where a group is left out. Throws for both names at once.
 */
function groupsOf(message: JsonObject): { readonly filters: unknown; readonly orFilters: unknown } {
  const either = (name: string, alias: string): unknown => {
    if (message[name] !== undefined && message[alias] !== undefined)
      throw new SubscriptionError('INVALID_FILTERS', `${alias} is another name of ${name}; send one of the two`)
    return message[name] === undefined ? message[alias] : message[name]
  }
  return { filters: either('filters', 'filter'), orFilters: either('orFilters', 'orFilter') }
}

/** The cursor of a message; empty, which is not recovered, where it is not a string. */
const sinceOf = ({ since }: JsonObject): string | null =>
  since === undefined || since === null ? null : typeof since === 'string' ? since : ''

/** The query of the upgrade request. */
export interface UpgradeRequest {
  /** Null to wait for messages. */
  readonly channel: string | null
  /** A cursor to resume from. */
  readonly since?: string | undefined
  /** The address that budgets count. */
  readonly address: string
}

/** Subscribes to the channel of the URL as soon as the caller is known. */
export function createSession(connection: Connection, request: UpgradeRequest, deps: SessionDeps): Session {
  const { access, delivery, broadcasts, budget, log } = deps
  const subscriptions = new Map<string, Subscription>()

  function refuse(error: unknown): void {
    if (!(error instanceof SubscriptionError) && !(error instanceof EngineError)) throw error
    const { code, message } =
      error instanceof SubscriptionError
        ? error
        : { code: 'UNAVAILABLE', message: 'Not available right now; try again later' }
    connection.error(code, message)
    if (code === 'NOT_AUTHENTICATED') connection.close(closeCodes.badMessage, code)
  }

  /** Reports that changes were missed that are no longer known. */
  const sendUnrecovered = (channel: string, cursor: string): void =>
    sendSubscribed(channel, subscriptions.get(channel)?.options ?? noFilters, { cursor, recovered: false })

  const sendSubscribed = (channel: string, filters: Filters, joined: Partial<Joined>): void =>
    connection.send({ type: 'subscribed', channel, serverFilter: hasFilters(filters), ...joined })

  /** Counts a subscription; the one that it replaces is released afterwards. */
  function reserve(channel: string, options: SubscriptionOptions): () => void {
    if (!subscriptions.has(channel) && subscriptions.size >= subscriptionsPerSocketMax)
      throw new SubscriptionError(
        'RATE_LIMITED',
        `A socket may subscribe to at most ${subscriptionsPerSocketMax} channels`,
      )
    const replaced = subscriptions.get(channel)
    return budget.reserve(connection.caller, request.address, charsOf(options), replaced && charsOf(replaced.options))
  }

  function register(channel: string, subscription: Subscription): void {
    subscriptions.get(channel)?.release()
    subscriptions.set(channel, subscription)
    connection.listen(broadcastTopic(channel))
    connection.settle()
  }

  async function subscribe(message: JsonObject): Promise<void> {
    const channel = channelOf(message)
    const { filters = null, orFilters = null } = groupsOf(message)
    const options = { filters, orFilters, previous: message.previous === true }
    if (isBroadcast(channel)) return subscribeToBroadcast(channel, sinceOf(message))
    const query = await access.query(connection.caller, channel, options)
    const release = reserve(channel, options)
    const subscriber =
      subscriptions.get(channel)?.subscriber ??
      createSubscriber(connection, (cursor) => sendUnrecovered(channel, cursor))
    let hasJoined = false
    try {
      await delivery.join(subscriber, query, sinceOf(message), (joined) => {
        hasJoined = true
        register(channel, { subscriber, options, key: queryKey(query), release })
        sendSubscribed(channel, options, joined)
      })
    } catch (error) {
      // The promised changes cannot be delivered now; the client resumes with the cursor.
      if (hasJoined) connection.close(closeCodes.restarting, 'UNAVAILABLE')
      throw error
    } finally {
      if (!hasJoined) release()
    }
  }

  async function subscribeToBroadcast(channel: string, since: string | null): Promise<void> {
    await access.useBroadcast(connection.caller, channel, 'subscribe')
    register(channel, { subscriber: null, options: noFilters, key: '', release: reserve(channel, noFilters) })
    // Broadcasts are not stored.
    sendSubscribed(channel, noFilters, since === null ? {} : { recovered: false })
  }

  async function publish(message: JsonObject): Promise<void> {
    const { channel, event, payload = null } = message
    await access.useBroadcast(connection.caller, channelOf(message), 'publish')
    if (typeof event !== 'string' || event === '' || event.length > broadcastEventCharsMax)
      throw new SubscriptionError('INVALID_MESSAGE', `event must be text of 1 to ${broadcastEventCharsMax} characters`)
    if (Buffer.byteLength(JSON.stringify(payload)) > broadcastPayloadBytesMax)
      throw new SubscriptionError('MESSAGE_TOO_LARGE', `payload must have at most ${broadcastPayloadBytesMax} bytes`)
    connection.settle()
    try {
      broadcasts.send({ channel: channel as string, event, payload })
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      throw new SubscriptionError('UNAVAILABLE', 'Not available right now; try again later')
    }
  }

  function leave(channel: string): void {
    const found = subscriptions.get(channel)
    if (!found) throw new SubscriptionError('NOT_SUBSCRIBED', 'This channel is not subscribed to')
    subscriptions.delete(channel)
    found.release()
    connection.unlisten(broadcastTopic(channel))
    if (found.subscriber) delivery.leave(found.subscriber)
  }

  function unsubscribe(message: JsonObject): void {
    const channel = channelOf(message)
    leave(channel)
    connection.send({ type: 'unsubscribed', channel })
  }

  async function updateFilters(message: JsonObject): Promise<void> {
    const channel = channelOf(message)
    const found = subscriptions.get(channel)
    if (!found?.subscriber) throw new SubscriptionError('NOT_SUBSCRIBED', 'This channel is not subscribed to')
    const groups = groupsOf(message)
    const next = {
      ...found.options,
      ...(groups.filters === undefined ? {} : { filters: groups.filters }),
      ...(groups.orFilters === undefined ? {} : { orFilters: groups.orFilters }),
    }
    const query = await access.query(connection.caller, channel, next)
    let unused = reserve(channel, next)
    try {
      await delivery.join(found.subscriber, query, null, ({ cursor }) => {
        ;[found.release, unused] = [unused, found.release]
        found.options = next
        found.key = queryKey(query)
        connection.send({ type: 'filters_updated', channel, serverFilter: hasFilters(next), cursor })
      })
    } finally {
      unused()
    }
  }

  /** Returns whether the query has changed. Throws where the caller may no longer subscribe to the channel. */
  async function reviewOne(channel: string, subscription: Subscription, onChanged: OnChanged): Promise<boolean> {
    const { subscriber, options } = subscription
    // The subscriptions of an anonymous socket count as the user's once it is authenticated.
    subscription.release()
    subscription.release = budget.reserve(connection.caller, request.address, charsOf(options))
    if (!subscriber) {
      await access.useBroadcast(connection.caller, channel, 'subscribe')
      return false
    }
    const query = await access.query(connection.caller, channel, options)
    const key = queryKey(query)
    if (key === subscription.key) return false
    await delivery.join(subscriber, query, null, ({ cursor }) => {
      subscription.key = key
      onChanged(channel, cursor)
    })
    return true
  }

  async function review(onChanged: OnChanged = () => undefined): Promise<Reviewed> {
    const revoked: string[] = []
    const changed: string[] = []
    for (const [channel, subscription] of [...subscriptions])
      try {
        if (await reviewOne(channel, subscription, onChanged)) changed.push(channel)
      } catch (error) {
        // Without a decision nothing may be shown.
        if (!(error instanceof SubscriptionError)) log.error('subscriptions.review_failed', { channel, error })
        leave(channel)
        revoked.push(channel)
      }
    return { revoked, changed }
  }

  const handlers: Readonly<Record<string, (message: JsonObject) => void | Promise<void>>> = {
    subscribe,
    unsubscribe,
    update_filters: updateFilters,
    broadcast: publish,
  }

  async function answer(handle: () => void | Promise<void>): Promise<void> {
    try {
      await handle()
    } catch (error) {
      refuse(error)
    }
  }

  const subscribeToUrl = (): void | Promise<void> =>
    request.channel === null || subscriptions.has(request.channel)
      ? undefined
      : answer(() => subscribe({ channel: request.channel, since: request.since }))

  return {
    messageRate: subscriptionMessageRate,
    reset: () =>
      connection.perform(async () => {
        const { revoked } = await review(sendUnrecovered)
        for (const channel of revoked)
          connection.send({ type: 'error', code: 'CHANNEL_ACCESS_DENIED', message: 'Access denied', channel })
      }),
    onOpen: () => (connection.caller.kind === 'service' ? subscribeToUrl() : undefined),
    async onAuth(_, isRefresh) {
      const { revoked, changed } = await review()
      const changes = changed.length > 0 ? { changedChannels: changed } : {}
      return isRefresh || revoked.length > 0 ? { revokedChannels: revoked, ...changes } : changes
    },
    afterAuth: (isRefresh) => (isRefresh ? undefined : subscribeToUrl()),
    onMessage(type, message) {
      const handle = Object.hasOwn(handlers, type) ? handlers[type] : undefined
      if (!handle) return connection.error('UNKNOWN_TYPE', 'There is no message of this type')
      return answer(() => handle(message))
    },
    onDrained() {
      for (const { subscriber } of subscriptions.values())
        if (subscriber?.pausedAt)
          delivery.resume(subscriber).catch((error) => {
            log.error('subscriptions.resume_failed', { error })
            connection.close(closeCodes.restarting, 'UNAVAILABLE')
          })
    },
    onClose() {
      for (const { subscriber, release } of subscriptions.values()) {
        release()
        if (subscriber) delivery.leave(subscriber)
      }
      subscriptions.clear()
    },
  }
}
