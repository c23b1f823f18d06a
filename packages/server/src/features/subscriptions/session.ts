/**
 * The subscriptions of one socket: handles its messages, checks access (`channel-access`), and joins subscribers to
 * queries (`delivery`). `http/socket` owns the connection and authentication.
 */
import type { Log } from '../../base/log.ts'
import { EngineError } from '../../engines/sql/error.ts'
import { ApiError } from '../../errors.ts'
import type { JsonObject } from '../../http/input/body.ts'
import type { Connection, SocketHandler } from '../../http/sockets/socket-handler.ts'
import { closeCodes } from '../../http/sockets/socket-protocol.ts'
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
import {
  parseClientMessage,
  type ReceivedBroadcast,
  type ReceivedMessage,
  type ReceivedSubscribe,
  type ReceivedUpdate,
} from './parse-message.ts'
import type { SubscriptionServerMessage } from './protocol.ts'
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

export interface Session extends SocketHandler<SubscriptionServerMessage> {
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
export function createSession(
  connection: Connection<SubscriptionServerMessage>,
  request: UpgradeRequest,
  deps: SessionDeps,
): Session {
  const { access, delivery, broadcasts, budget, log } = deps
  const subscriptions = new Map<string, Subscription>()

  function refuse(error: unknown): void {
    if (!(error instanceof SubscriptionError) && !(error instanceof EngineError)) throw error
    const { code, message } =
      error instanceof SubscriptionError
        ? error
        : new SubscriptionError('UNAVAILABLE', 'Not available right now; try again later')
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
    connection.subscribe(broadcastTopic(channel))
    connection.markActive()
  }

  async function subscribe(message: Omit<ReceivedSubscribe, 'type'>): Promise<void> {
    const { channel, filters = null, orFilters = null, since, previous } = message
    const options = { filters, orFilters, previous }
    if (isBroadcast(channel)) return subscribeToBroadcast(channel, since)
    const query = await access.query(connection.caller, channel, options)
    const release = reserve(channel, options)
    const subscriber =
      subscriptions.get(channel)?.subscriber ??
      createSubscriber(connection, (cursor) => sendUnrecovered(channel, cursor))
    let hasJoined = false
    try {
      await delivery.join(subscriber, query, since, (joined) => {
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

  async function publish({ channel, event, payload }: ReceivedBroadcast): Promise<void> {
    await access.useBroadcast(connection.caller, channel, 'publish')
    if (typeof event !== 'string' || event === '' || event.length > broadcastEventCharsMax)
      throw new SubscriptionError('INVALID_MESSAGE', `event must be text of 1 to ${broadcastEventCharsMax} characters`)
    if (Buffer.byteLength(JSON.stringify(payload)) > broadcastPayloadBytesMax)
      throw new SubscriptionError('MESSAGE_TOO_LARGE', `payload must have at most ${broadcastPayloadBytesMax} bytes`)
    connection.markActive()
    try {
      broadcasts.send({ channel, event, payload })
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
    connection.unsubscribe(broadcastTopic(channel))
    if (found.subscriber) delivery.leave(found.subscriber)
  }

  function unsubscribe(channel: string): void {
    leave(channel)
    connection.send({ type: 'unsubscribed', channel })
  }

  async function updateFilters({ channel, ...groups }: Omit<ReceivedUpdate, 'type'>): Promise<void> {
    const found = subscriptions.get(channel)
    if (!found?.subscriber) throw new SubscriptionError('NOT_SUBSCRIBED', 'This channel is not subscribed to')
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

  function dispatch(message: ReceivedMessage): void | Promise<void> {
    switch (message.type) {
      case 'subscribe':
        return subscribe(message)
      case 'unsubscribe':
        return unsubscribe(message.channel)
      case 'update_filters':
        return updateFilters(message)
      case 'broadcast':
        return publish(message)
      default:
        message satisfies never
    }
  }

  function receive(type: string, object: JsonObject): void | Promise<void> {
    const message = parseClientMessage(type, object)
    if (message === null) return connection.error('UNKNOWN_TYPE', 'There is no message of this type')
    return dispatch(message)
  }

  async function answer(handle: () => void | Promise<void>): Promise<void> {
    try {
      await handle()
    } catch (error) {
      refuse(error)
    }
  }

  const subscribeToUrl = (channel = request.channel): void | Promise<void> =>
    channel === null || subscriptions.has(channel)
      ? undefined
      : answer(() => subscribe({ channel, since: request.since ?? null, ...noFilters }))

  return {
    messageRate: subscriptionMessageRate,
    reset: () =>
      connection.enqueue(async () => {
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
    onMessage: (type, message) => answer(() => receive(type, message)),
    onDrain() {
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
