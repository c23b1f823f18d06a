/**
 * One socket's subscriptions: parses its messages, asks `channel-access` what the caller may do, and has `delivery`
 * bring the changes. The socket itself is `http/socket`'s.
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
import type { ChannelAccess, Filters, Wanted } from './channel-access.ts'
import type { Delivery, Joined } from './delivery.ts'
import { createMember, type Member } from './members.ts'
import { SubscriptionError } from './refusal.ts'
import { sightKey } from './sight.ts'

interface Subscription {
  /** Null for a channel of no table. */
  readonly member: Member | null
  wanted: Wanted
  /** Of the sight it has now. */
  key: string
  /** Gives its part of the budget back. */
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
  /** Judges every subscription again, since what may be watched has changed, and says what came of it. */
  reset(): Promise<void>
}

interface Reviewed {
  /** Channels that may not be watched any longer. */
  readonly revoked: readonly string[]
  /** Channels whose view is another now and is to be listed again. */
  readonly changed: readonly string[]
}

/** Called with a channel whose view is another now, in the moment it becomes so. */
type OnChanged = (channel: string, cursor: string) => void

const noFilters: Wanted = { filters: null, orFilters: null, previous: false }

const isNothing = (group: unknown): boolean => group === null || (Array.isArray(group) && group.length === 0)

/** Whether the server leaves out changes that the filters do. */
const hasFilters = ({ filters, orFilters }: Filters): boolean => !isNothing(filters) || !isNothing(orFilters)

const charsOf = (wanted: Filters): number =>
  hasFilters(wanted) ? JSON.stringify([wanted.filters, wanted.orFilters]).length : 0

/** The channel that a message names; the empty text, which is none, for what is no text. */
const channelOf = ({ channel }: JsonObject): string => (typeof channel === 'string' ? channel : '')

/**
 * The groups of a message, each under either of its names, as `filters` in socket messages or `filter` as in requests;
 * undefined where a group is left out. Throws for both names at once.
 */
function groupsOf(message: JsonObject): { readonly filters: unknown; readonly orFilters: unknown } {
  const either = (name: string, alias: string): unknown => {
    if (message[name] !== undefined && message[alias] !== undefined)
      throw new SubscriptionError('INVALID_FILTERS', `${alias} is another name of ${name}; send one of the two`)
    return message[name] === undefined ? message[alias] : message[name]
  }
  return { filters: either('filters', 'filter'), orFilters: either('orFilters', 'orFilter') }
}

/** The cursor of a message. What is no text is a cursor that is not known. */
const sinceOf = ({ since }: JsonObject): string | null =>
  since === undefined || since === null ? null : typeof since === 'string' ? since : ''

/** What the socket's address asks for. */
export interface Asked {
  /** Null to wait for messages. */
  readonly channel: string | null
  /** A cursor to go on from. */
  readonly since?: string | undefined
  /** As budgets count it. */
  readonly address: string
}

/** The channel of the address is subscribed to as soon as the caller is known. */
export function createSession(connection: Connection, asked: Asked, deps: SessionDeps): Session {
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

  /** Says that changes were missed which are no longer known. */
  const sayLost = (channel: string, cursor: string): void =>
    saySubscribed(channel, subscriptions.get(channel)?.wanted ?? noFilters, { cursor, recovered: false })

  const saySubscribed = (channel: string, filters: Filters, joined: Partial<Joined>): void =>
    connection.send({ type: 'subscribed', channel, serverFilter: hasFilters(filters), ...joined })

  /** Counts a subscription; one that it replaces is to be released when it does. */
  function reserve(channel: string, wanted: Wanted): () => void {
    if (!subscriptions.has(channel) && subscriptions.size >= subscriptionsPerSocketMax)
      throw new SubscriptionError('RATE_LIMITED', `A socket may watch at most ${subscriptionsPerSocketMax} channels`)
    const replaced = subscriptions.get(channel)
    return budget.reserve(connection.caller, asked.address, charsOf(wanted), replaced && charsOf(replaced.wanted))
  }

  function remember(channel: string, subscription: Subscription): void {
    subscriptions.get(channel)?.release()
    subscriptions.set(channel, subscription)
    connection.listen(broadcastTopic(channel))
    connection.settle()
  }

  async function subscribe(message: JsonObject): Promise<void> {
    const channel = channelOf(message)
    const { filters = null, orFilters = null } = groupsOf(message)
    const wanted = { filters, orFilters, previous: message.previous === true }
    if (isBroadcast(channel)) return subscribeToBroadcast(channel, sinceOf(message))
    const sight = await access.sight(connection.caller, channel, wanted)
    const release = reserve(channel, wanted)
    const member = subscriptions.get(channel)?.member ?? createMember(connection, (cursor) => sayLost(channel, cursor))
    let hasJoined = false
    try {
      await delivery.join(member, sight, sinceOf(message), (joined) => {
        hasJoined = true
        remember(channel, { member, wanted, key: sightKey(sight), release })
        saySubscribed(channel, wanted, joined)
      })
    } catch (error) {
      // What it was promised cannot be brought now; its cursor is good for another attempt.
      if (hasJoined) connection.close(closeCodes.restarting, 'UNAVAILABLE')
      throw error
    } finally {
      if (!hasJoined) release()
    }
  }

  async function subscribeToBroadcast(channel: string, since: string | null): Promise<void> {
    await access.useBroadcast(connection.caller, channel, 'subscribe')
    remember(channel, { member: null, wanted: noFilters, key: '', release: reserve(channel, noFilters) })
    // Nothing of it is stored.
    saySubscribed(channel, noFilters, since === null ? {} : { recovered: false })
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
    if (found.member) delivery.leave(found.member)
  }

  function unsubscribe(message: JsonObject): void {
    const channel = channelOf(message)
    leave(channel)
    connection.send({ type: 'unsubscribed', channel })
  }

  async function updateFilters(message: JsonObject): Promise<void> {
    const channel = channelOf(message)
    const found = subscriptions.get(channel)
    if (!found?.member) throw new SubscriptionError('NOT_SUBSCRIBED', 'This channel is not subscribed to')
    const groups = groupsOf(message)
    const next = {
      ...found.wanted,
      ...(groups.filters === undefined ? {} : { filters: groups.filters }),
      ...(groups.orFilters === undefined ? {} : { orFilters: groups.orFilters }),
    }
    const sight = await access.sight(connection.caller, channel, next)
    let unused = reserve(channel, next)
    try {
      await delivery.join(found.member, sight, null, ({ cursor }) => {
        ;[found.release, unused] = [unused, found.release]
        found.wanted = next
        found.key = sightKey(sight)
        connection.send({ type: 'filters_updated', channel, serverFilter: hasFilters(next), cursor })
      })
    } finally {
      unused()
    }
  }

  /** Gives whether the view has changed. Throws where the channel may not be watched any longer. */
  async function reviewOne(channel: string, subscription: Subscription, onChanged: OnChanged): Promise<boolean> {
    const { member, wanted } = subscription
    // An anonymous socket's subscriptions become the user's.
    subscription.release()
    subscription.release = budget.reserve(connection.caller, asked.address, charsOf(wanted))
    if (!member) {
      await access.useBroadcast(connection.caller, channel, 'subscribe')
      return false
    }
    const sight = await access.sight(connection.caller, channel, wanted)
    const key = sightKey(sight)
    if (key === subscription.key) return false
    await delivery.join(member, sight, null, ({ cursor }) => {
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
        // Whatever keeps it from being judged, nothing is shown that might not be allowed.
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
    asked.channel === null || subscriptions.has(asked.channel)
      ? undefined
      : answer(() => subscribe({ channel: asked.channel, since: asked.since }))

  return {
    messageRate: subscriptionMessageRate,
    reset: () =>
      connection.perform(async () => {
        const { revoked } = await review(sayLost)
        for (const channel of revoked)
          connection.send({ type: 'error', code: 'CHANNEL_ACCESS_DENIED', message: 'Access denied', channel })
      }),
    onOpen: () => (connection.caller.kind === 'service' ? subscribeToUrl() : undefined),
    async onAuth(_, isRefresh) {
      const { revoked, changed } = await review()
      const anew = changed.length > 0 ? { changedChannels: changed } : {}
      return isRefresh || revoked.length > 0 ? { revokedChannels: revoked, ...anew } : anew
    },
    afterAuth: (isRefresh) => (isRefresh ? undefined : subscribeToUrl()),
    onMessage(type, message) {
      const handle = Object.hasOwn(handlers, type) ? handlers[type] : undefined
      if (!handle) return connection.error('UNKNOWN_TYPE', 'There is no message of this type')
      return answer(() => handle(message))
    },
    onDrained() {
      for (const { member } of subscriptions.values())
        if (member?.pausedAt)
          delivery.resume(member).catch((error) => {
            log.error('subscriptions.resume_failed', { error })
            connection.close(closeCodes.restarting, 'UNAVAILABLE')
          })
    },
    onClose() {
      for (const { member, release } of subscriptions.values()) {
        release()
        if (member) delivery.leave(member)
      }
      subscriptions.clear()
    },
  }
}
