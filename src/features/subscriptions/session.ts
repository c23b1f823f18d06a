/**
 * One socket's subscriptions: what its messages mean, who may watch what, and what of it changes when the caller does.
 * The socket itself is `http/socket`'s matter, bringing changes to it `delivery`'s.
 */
import { denied, required } from '../../access/check.ts'
import { permitsScope } from '../../access/service-keys.ts'
import type { Log } from '../../base/log.ts'
import { EngineError } from '../../engines/error.ts'
import { ApiError } from '../../errors.ts'
import type { JsonObject } from '../../http/body.ts'
import { type Connection, type Conversation, closeCodes } from '../../http/socket.ts'
import { subscriptionFiltersMax, subscriptionMessageRate, subscriptionsPerSocketMax } from '../../limits.ts'
import { allOf, type Expr } from '../../query/expr.ts'
import { parseFilterGroups } from '../../query/filter.ts'
import { broadcastTopic } from './broadcast.ts'
import { type FindNamespace, findTarget, type Target } from './channels.ts'
import { createMember, type Delivery, type Joined, type Member } from './delivery.ts'
import type { Resolve, TableCall } from './feed.ts'
import { type Sight, sightKey } from './views.ts'

/** The two groups as they were sent; null for none. */
interface Filters {
  readonly filters: unknown
  readonly orFilters: unknown
}

interface Subscription {
  readonly member: Member
  filters: Filters
  /** Of the sight it has now; empty until it has one. */
  key: string
}

/** What is said to a message that is refused. */
class Refusal extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message)
  }
}

export interface SessionDeps {
  readonly resolve: Resolve
  readonly findNamespace: FindNamespace
  readonly delivery: Delivery
  readonly log: Log
}

export interface Session extends Conversation {
  /** Judges every subscription anew, since what may be watched has changed, and says what came of it. */
  reset(): Promise<void>
}

interface Reviewed {
  /** Channels that may not be watched any longer. */
  readonly revoked: readonly string[]
  /** Channels whose view is another now and is to be read anew. */
  readonly changed: readonly string[]
}

/** Told of a channel whose view is another now, in the moment it becomes so. */
type OnChanged = (channel: string, cursor: string) => void

const isNothing = (group: unknown): boolean => group === null || (Array.isArray(group) && group.length === 0)

/** Whether the server leaves out changes that the filters do. */
const hasFilters = ({ filters, orFilters }: Filters): boolean => !isNothing(filters) || !isNothing(orFilters)

/** The channel that a message names; the empty text, which is none, for what is no text. */
const channelOf = ({ channel }: JsonObject): string => (typeof channel === 'string' ? channel : '')

/**
 * The groups a message carries, each under either of its names, as `filters` in socket messages or `filter` as in
 * requests; undefined where it carries none. Throws `Refusal` for both names at once.
 */
function groupsIn(message: JsonObject): { readonly filters: unknown; readonly orFilters: unknown } {
  const either = (name: string, alias: string): unknown => {
    if (message[name] !== undefined && message[alias] !== undefined)
      throw new Refusal('INVALID_FILTERS', `${alias} is another name of ${name}; send one of the two`)
    return message[name] === undefined ? message[alias] : message[name]
  }
  return { filters: either('filters', 'filter'), orFilters: either('orFilters', 'orFilter') }
}

/** A group as it is kept: what is left out or null is none. */
const groupOf = (group: unknown): unknown => group ?? null

function parseFilters(call: TableCall, { filters, orFilters }: Filters): Expr {
  for (const group of [filters, orFilters])
    if (Array.isArray(group) && group.length > subscriptionFiltersMax)
      throw new Refusal('INVALID_FILTERS', `At most ${subscriptionFiltersMax} conditions are allowed in each group`)
  try {
    // Hidden fields are hidden from everybody here: what is watched may be shown to anybody who sees the socket's page.
    return parseFilterGroups(
      { table: call.table, showsHidden: false },
      { filters: filters ?? undefined, orFilters: orFilters ?? undefined },
    )
  } catch (error) {
    if (error instanceof ApiError) throw new Refusal('INVALID_FILTERS', error.message)
    throw error
  }
}

/** What the socket's address asks for. */
export interface Asked {
  readonly channel: string
  /** A cursor to go on from. */
  readonly since?: string | undefined
}

/** What is asked for by the address is subscribed to as soon as it is known who is there. */
export function createSession(connection: Connection, asked: Asked, deps: SessionDeps): Session {
  const { resolve, findNamespace, delivery, log } = deps
  const subscriptions = new Map<string, Subscription>()

  /** The caller's way to a channel's table. */
  async function open({ table: tableName, ...path }: Target): Promise<TableCall> {
    const { caller } = connection
    try {
      const call = await resolve({ ...path, tableName }, caller)
      required(call.permissions.read(), caller)
      if (caller.kind === 'service' && !permitsScope(caller.scopes, `db:table:${tableName}:read`)) throw denied(caller)
      return call
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      if (error.status === 401) throw new Refusal('NOT_AUTHENTICATED', error.message)
      if (error.status === 403) throw new Refusal('CHANNEL_ACCESS_DENIED', error.message)
      throw new Refusal('INVALID_CHANNEL', error.message)
    }
  }

  /** What the caller sees of a channel: what the rule allows AND the document AND the filters. Throws `Refusal`. */
  async function look(channel: unknown, filters: Filters): Promise<Sight> {
    const target = typeof channel === 'string' ? findTarget(channel, findNamespace) : null
    if (typeof channel !== 'string' || !target) throw new Refusal('INVALID_CHANNEL', 'There is no such channel')
    const call = await open(target)
    const parts = [call.permissions.read(), parseFilters(call, filters)]
    if (target.docId !== null) parts.push({ kind: 'compare', field: 'id', op: '==', value: target.docId })
    return { channel, call, condition: allOf(parts) }
  }

  function refuse(error: unknown): void {
    if (!(error instanceof Refusal) && !(error instanceof EngineError)) throw error
    const { code, message } =
      error instanceof Refusal ? error : { code: 'UNAVAILABLE', message: 'Not available right now; try again later' }
    connection.error(code, message)
    if (code === 'NOT_AUTHENTICATED') connection.close(closeCodes.badMessage, code)
  }

  /** Says that changes were missed which are no longer known. */
  const sayLost = (channel: string, cursor: string): void =>
    saySubscribed(channel, subscriptions.get(channel)?.filters ?? noFilters, { cursor, recovered: false })

  const saySubscribed = (channel: string, filters: Filters, joined: Joined): void =>
    connection.send({ type: 'subscribed', channel, serverFilter: hasFilters(filters), ...joined })

  async function subscribe(message: JsonObject): Promise<void> {
    const groups = groupsIn(message)
    const filters = { filters: groupOf(groups.filters), orFilters: groupOf(groups.orFilters) }
    const sight = await look(message.channel, filters)
    const { channel } = sight
    const since = typeof message.since === 'string' ? message.since : null
    const found = subscriptions.get(channel)
    if (!found && subscriptions.size >= subscriptionsPerSocketMax)
      throw new Refusal('RATE_LIMITED', `A socket may watch at most ${subscriptionsPerSocketMax} channels`)
    const member = found?.member ?? createMember(connection, (cursor) => sayLost(channel, cursor))
    await delivery.join(member, sight, since, (joined) => {
      subscriptions.set(channel, { member, filters, key: sightKey(sight) })
      connection.listen(broadcastTopic(channel))
      connection.settle()
      saySubscribed(channel, filters, joined)
    })
  }

  function leave(channel: string): void {
    const found = subscriptions.get(channel)
    if (!found) throw new Refusal('NOT_SUBSCRIBED', 'This channel is not subscribed to')
    subscriptions.delete(channel)
    connection.unlisten(broadcastTopic(channel))
    delivery.leave(found.member)
  }

  function unsubscribe(message: JsonObject): void {
    const channel = channelOf(message)
    leave(channel)
    connection.send({ type: 'unsubscribed', channel })
  }

  async function updateFilters(message: JsonObject): Promise<void> {
    const channel = channelOf(message)
    const found = subscriptions.get(channel)
    if (!found) throw new Refusal('NOT_SUBSCRIBED', 'This channel is not subscribed to')
    const { filters = found.filters.filters, orFilters = found.filters.orFilters } = groupsIn(message)
    const next = { filters, orFilters }
    const sight = await look(channel, next)
    await delivery.join(found.member, sight, null, ({ cursor }) => {
      found.filters = next
      found.key = sightKey(sight)
      connection.send({ type: 'filters_updated', channel, serverFilter: hasFilters(next), cursor })
    })
  }

  /** Gives whether the view has changed. Throws where the channel may not be watched any longer. */
  async function reviewOne(channel: string, subscription: Subscription, onChanged: OnChanged): Promise<boolean> {
    const sight = await look(channel, subscription.filters)
    const key = sightKey(sight)
    if (key === subscription.key) return false
    await delivery.join(subscription.member, sight, null, ({ cursor }) => {
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
        if (!(error instanceof Refusal)) log.error('A subscription could not be judged', { channel, error })
        leave(channel)
        revoked.push(channel)
      }
    return { revoked, changed }
  }

  const handlers: Readonly<Record<string, (message: JsonObject) => void | Promise<void>>> = {
    subscribe,
    unsubscribe,
    update_filters: updateFilters,
  }

  async function answer(handle: () => void | Promise<void>): Promise<void> {
    try {
      await handle()
    } catch (error) {
      refuse(error)
    }
  }

  const subscribeToUrl = (): void | Promise<void> =>
    subscriptions.has(asked.channel) ? undefined : answer(() => subscribe({ ...asked }))

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
        if (member.heldAt)
          delivery.resume(member).catch((error) => {
            log.error('A slow socket could not be brought up to date', { error })
            connection.close(closeCodes.restarting, 'UNAVAILABLE')
          })
    },
    onClose() {
      for (const { member } of subscriptions.values()) delivery.leave(member)
      subscriptions.clear()
    },
  }
}

const noFilters: Filters = { filters: null, orFilters: null }
