/**
 * The subscriptions of one socket: adds, replaces, reviews and removes them, each within the budget of the caller and
 * its address (`budget`). Which rows a subscription shows is decided by `channel-access`; `delivery` sends them.
 */
import type { Log } from '../../../base/log.ts'
import type { Connection } from '../../../http/sockets/socket-handler.ts'
import { closeCodes } from '../../../http/sockets/socket-protocol.ts'
import { subscriptionsPerSocketMax } from '../../../limits/subscriptions.ts'
import { broadcastTopic, isBroadcast } from '../broadcasts/broadcast.ts'
import type { ChannelAccess, Filters, SubscriptionOptions } from '../channel-access.ts'
import type { Delivery, Joined } from '../delivery/delivery.ts'
import { createSubscriber, type Subscriber } from '../delivery/subscribers.ts'
import { queryKey } from '../matching/subscription-query.ts'
import type { SubscriptionServerMessage } from '../protocol.ts'
import type { Budget } from './budget.ts'
import { SubscriptionError } from './subscription-error.ts'

interface Subscription {
  /** Null for a broadcast channel. */
  readonly subscriber: Subscriber | null
  options: SubscriptionOptions
  /** Of its current query. */
  key: string
  /** Returns its part of the budget. */
  release: () => void
}

export interface SocketSubscriptionsDeps {
  readonly access: ChannelAccess
  readonly delivery: Delivery
  readonly budget: Budget
  readonly log: Log
}

export interface SubscribeRequest {
  readonly channel: string
  /** The groups as they were sent; undefined or null for none. */
  readonly filters?: unknown
  readonly orFilters?: unknown
  /** A cursor to resume from. */
  readonly since: string | null
  readonly previous: boolean
  /** As it was sent; undefined or null for all. */
  readonly fields?: unknown
}

export interface Reviewed {
  /** Channels that the caller may no longer subscribe to. */
  readonly revoked: readonly string[]
  /** Channels that show other rows now and have to be listed again. */
  readonly changed: readonly string[]
}

/** Called with a channel whose query is replaced, between the events of the two. */
type OnChanged = (channel: string, cursor: string) => void

const noFilters: SubscriptionOptions = { filters: null, orFilters: null, previous: false, fields: null }

const isNothing = (group: unknown): boolean => group === null || (Array.isArray(group) && group.length === 0)

/** Whether any filter is in force. */
const hasFilters = ({ filters, orFilters }: Filters): boolean => !isNothing(filters) || !isNothing(orFilters)

const charsOf = (options: Filters): number =>
  hasFilters(options) ? JSON.stringify([options.filters, options.orFilters]).length : 0

/** Methods that check access or join a query throw `SubscriptionError`, and `EngineError` when no log can be read. */
export class SocketSubscriptions {
  readonly #connection: Connection<SubscriptionServerMessage>
  /** The address that budgets count. */
  readonly #address: string
  readonly #deps: SocketSubscriptionsDeps
  /** By channel. */
  readonly #subscriptions = new Map<string, Subscription>()

  constructor(connection: Connection<SubscriptionServerMessage>, address: string, deps: SocketSubscriptionsDeps) {
    this.#connection = connection
    this.#address = address
    this.#deps = deps
  }

  /** The channels with their tags. */
  get channels(): Iterable<string> {
    return this.#subscriptions.keys()
  }

  has(channel: string): boolean {
    return this.#subscriptions.has(channel)
  }

  /** Subscribes to a channel, instead of an earlier subscription to it. */
  async subscribe(request: SubscribeRequest): Promise<void> {
    const { channel, filters = null, orFilters = null, since, previous, fields = null } = request
    if (isBroadcast(channel)) return this.#subscribeToBroadcast(channel, since)
    const { access, delivery } = this.#deps
    const options = { filters, orFilters, previous, fields }
    const query = await access.query(this.#connection.caller, channel, options)
    const release = this.#reserve(channel, options)
    const subscriber =
      this.#subscriptions.get(channel)?.subscriber ??
      createSubscriber(this.#connection, (cursor) => this.sendUnrecovered(channel, cursor))
    let hasJoined = false
    try {
      await delivery.join(subscriber, query, since, (joined) => {
        hasJoined = true
        this.#register(channel, { subscriber, options, key: queryKey(query), release })
        this.#sendSubscribed(channel, options, joined)
      })
    } catch (error) {
      // The promised changes cannot be delivered now; the client resumes with the cursor.
      if (hasJoined) this.#connection.close(closeCodes.restarting, 'UNAVAILABLE')
      throw error
    } finally {
      if (!hasJoined) release()
    }
  }

  /** Replaces the filter groups that are not undefined. */
  async updateFilters(channel: string, { filters, orFilters }: Filters): Promise<void> {
    const found = this.#subscriptions.get(channel)
    if (!found?.subscriber) throw new SubscriptionError('NOT_SUBSCRIBED', 'This channel is not subscribed to')
    const next = {
      ...found.options,
      ...(filters === undefined ? {} : { filters }),
      ...(orFilters === undefined ? {} : { orFilters }),
    }
    const query = await this.#deps.access.query(this.#connection.caller, channel, next)
    let unused = this.#reserve(channel, next)
    try {
      await this.#deps.delivery.join(found.subscriber, query, null, ({ cursor }) => {
        ;[found.release, unused] = [unused, found.release]
        found.options = next
        found.key = queryKey(query)
        this.#connection.send({ type: 'filters_updated', channel, serverFilter: hasFilters(next), cursor })
      })
    } finally {
      unused()
    }
  }

  unsubscribe(channel: string): void {
    this.#leave(channel)
    this.#connection.send({ type: 'unsubscribed', channel })
  }

  /** Evaluates the access of every subscription again and ends those that are denied. Never rejects. */
  async review(onChanged: OnChanged = () => undefined): Promise<Reviewed> {
    const revoked: string[] = []
    const changed: string[] = []
    for (const [channel, subscription] of [...this.#subscriptions])
      try {
        if (await this.#reviewOne(channel, subscription, onChanged)) changed.push(channel)
      } catch (error) {
        // Without a decision nothing may be shown.
        if (!(error instanceof SubscriptionError))
          this.#deps.log.error('subscriptions.review_failed', { channel, error })
        this.#leave(channel)
        revoked.push(channel)
      }
    return { revoked, changed }
  }

  /** Reports that changes were missed that are no longer known. */
  sendUnrecovered(channel: string, cursor: string): void {
    const options = this.#subscriptions.get(channel)?.options ?? noFilters
    this.#sendSubscribed(channel, options, { cursor, recovered: false })
  }

  /** To be called when the client has read everything it was sent. */
  resume(): void {
    for (const { subscriber } of this.#subscriptions.values())
      if (subscriber?.pausedAt)
        this.#deps.delivery.resume(subscriber).catch((error) => {
          this.#deps.log.error('subscriptions.resume_failed', { error })
          this.#connection.close(closeCodes.restarting, 'UNAVAILABLE')
        })
  }

  /** Ends every subscription of a closed socket. */
  close(): void {
    for (const { subscriber, release } of this.#subscriptions.values()) {
      release()
      if (subscriber) this.#deps.delivery.leave(subscriber)
    }
    this.#subscriptions.clear()
  }

  async #subscribeToBroadcast(channel: string, since: string | null): Promise<void> {
    await this.#deps.access.useBroadcast(this.#connection.caller, channel, 'subscribe')
    const release = this.#reserve(channel, noFilters)
    this.#register(channel, { subscriber: null, options: noFilters, key: '', release })
    // Broadcasts are not stored.
    this.#sendSubscribed(channel, noFilters, since === null ? {} : { recovered: false })
  }

  /** Counts a subscription; the one that it replaces is released afterwards. */
  #reserve(channel: string, options: SubscriptionOptions): () => void {
    const replaced = this.#subscriptions.get(channel)
    if (!replaced && this.#subscriptions.size >= subscriptionsPerSocketMax)
      throw new SubscriptionError(
        'RATE_LIMITED',
        `A socket may subscribe to at most ${subscriptionsPerSocketMax} channels`,
      )
    const { caller } = this.#connection
    return this.#deps.budget.reserve(caller, this.#address, charsOf(options), replaced && charsOf(replaced.options))
  }

  #register(channel: string, subscription: Subscription): void {
    this.#subscriptions.get(channel)?.release()
    this.#subscriptions.set(channel, subscription)
    this.#connection.subscribe(broadcastTopic(channel))
    this.#connection.markActive()
  }

  #leave(channel: string): void {
    const found = this.#subscriptions.get(channel)
    if (!found) throw new SubscriptionError('NOT_SUBSCRIBED', 'This channel is not subscribed to')
    this.#subscriptions.delete(channel)
    found.release()
    this.#connection.unsubscribe(broadcastTopic(channel))
    if (found.subscriber) this.#deps.delivery.leave(found.subscriber)
  }

  /** Returns whether the query has changed. Throws where the caller may no longer subscribe to the channel. */
  async #reviewOne(channel: string, subscription: Subscription, onChanged: OnChanged): Promise<boolean> {
    const { access, delivery, budget } = this.#deps
    const { caller } = this.#connection
    const { subscriber, options } = subscription
    // The subscriptions of an anonymous socket count as the user's once it is authenticated.
    subscription.release()
    subscription.release = budget.reserve(caller, this.#address, charsOf(options))
    if (!subscriber) {
      await access.useBroadcast(caller, channel, 'subscribe')
      return false
    }
    const query = await access.query(caller, channel, options)
    const key = queryKey(query)
    if (key === subscription.key) return false
    await delivery.join(subscriber, query, null, ({ cursor }) => {
      subscription.key = key
      onChanged(channel, cursor)
    })
    return true
  }

  #sendSubscribed(channel: string, filters: Filters, joined: Partial<Joined>): void {
    this.#connection.send({ type: 'subscribed', channel, serverFilter: hasFilters(filters), ...joined })
  }
}
