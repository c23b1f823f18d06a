/**
 * Live subscriptions (rules SUB-*): connects channels, sessions, delivery and broadcasts. `app` passes in the change
 * feed of `features/records`.
 */

import type { Log } from '../../base/log.ts'
import { countedAddress } from '../../base/network/address.ts'
import type { Cluster } from '../../engines/cluster/cluster.ts'
import { type ApiError, type ErrorSlug, invalidField, notFound } from '../../errors.ts'
import type { Reply } from '../../http/endpoint.ts'
import { json } from '../../http/replies/reply.ts'
import { createSessionSet } from '../../http/sockets/session-set.ts'
import type { Sockets } from '../../http/sockets/sockets.ts'
import { pendingSocketsMax, socketAuthTimeoutMs } from '../../limits/sockets.ts'
import type { Feature } from '../feature.ts'
import { type BroadcastChannels, broadcastNameOf, createBroadcasts, findBroadcast, isBroadcast } from './broadcast.ts'
import { createBudget } from './budget.ts'
import type { Feed, Resolve } from './change-feed.ts'
import { createChannelAccess } from './channel-access.ts'
import { type FindNamespace, findTarget, namesChannel, parseChannelQuery } from './channels.ts'
import { createCursorCodec } from './cursor-codec.ts'
import { Delivery } from './delivery.ts'
import { type ChannelCall, subscribeEndpoint, subscriptionEndpoints } from './endpoints.ts'
import { createSession, type Session } from './session.ts'

interface Namespace {
  readonly instance: boolean
  readonly tables: ReadonlyMap<string, unknown>
}

export interface SubscriptionsDeps {
  readonly feed: Feed
  readonly resolve: Resolve
  readonly namespaces: () => ReadonlyMap<string, Namespace>
  /** Declared broadcast channels. */
  readonly broadcasts: () => BroadcastChannels
  readonly cluster: Pick<Cluster, 'publish' | 'subscribe' | 'isHealthy'>
  readonly sockets: Pick<Sockets, 'pending'>
  /** Sends a text to every socket that listens to a topic. */
  readonly publish: (topic: string, text: string) => void
  /** Seals cursors. */
  readonly secret: string
  readonly log: Log
}

/** Why a socket is not opened. */
const refusals = {
  400: { slug: 'invalid-input', type: 'db_connect_invalid_request', category: 'request' },
  404: { slug: 'not-found', type: 'db_namespace_not_configured', category: 'config' },
  429: { slug: 'rate-limited', type: 'db_connect_rate_limited', category: 'rate_limit' },
} as const satisfies Readonly<Record<number, { slug: ErrorSlug; type: string; category: string }>>

const crowdedMessage = 'Too many connections from this address are open or waiting for authentication'

export function createSubscriptions(deps: SubscriptionsDeps): Feature {
  const { feed, resolve, namespaces, cluster, sockets, publish, secret, log } = deps
  const findNamespace: FindNamespace = (name) => namespaces().get(name)
  const delivery = new Delivery({ feed, cursors: createCursorCodec(secret), publish, log })
  const access = createChannelAccess({ resolve, findNamespace, broadcasts: deps.broadcasts, log })
  const budget = createBudget()
  const broadcasts = createBroadcasts(cluster, publish)
  const sessions = createSessionSet<Session>()

  const state = ({ address }: ChannelCall) => ({
    pendingCount: sockets.pending('subscriptions', countedAddress(address)),
    maxPending: pendingSocketsMax,
  })

  function rejection(call: ChannelCall, status: keyof typeof refusals, message: string, channel?: string): Reply {
    const named = channel === undefined ? {} : { channel }
    const body = { ok: false, code: status, ...refusals[status], message, ...named, ...state(call) }
    // A socket is pending for that long at most.
    const headers = { 'Retry-After': String(socketAuthTimeoutMs / 1000) }
    return status === 429 ? json(body, status, headers) : json(body, status)
  }

  function isDeclared(channel: string): boolean {
    const name = broadcastNameOf(channel)
    return name !== null && findBroadcast(deps.broadcasts(), name) !== undefined
  }

  /** The channel of a call, or the error response. */
  function channelOf(call: ChannelCall): string | Reply {
    let channel: string
    try {
      channel = parseChannelQuery(call.query, findNamespace)
    } catch (error) {
      return rejection(call, 400, (error as ApiError).message)
    }
    if (isBroadcast(channel)) {
      if (isDeclared(channel)) return channel
      return rejection(call, 404, 'This broadcast channel is not configured', channel)
    }
    const [, namespace = ''] = channel.split(':')
    const target = findTarget(channel, findNamespace)
    if (target && namespaces().get(namespace)?.tables.has(target.table)) return channel
    if (target) return rejection(call, 404, 'This table is not configured', channel)
    return channel.startsWith('dblive:') && namespace !== '' && !findNamespace(namespace)
      ? rejection(call, 404, 'This namespace is not configured', channel)
      : rejection(call, 400, 'This is not a channel')
  }

  const crowded = (call: ChannelCall): Reply => {
    if (!namesChannel(call.query)) return rejection(call, 429, crowdedMessage)
    const channel = channelOf(call)
    return typeof channel === 'string' ? rejection(call, 429, crowdedMessage, channel) : channel
  }

  const handlers: Parameters<typeof subscriptionEndpoints>[0] = {
    check(call) {
      const channel = channelOf(call)
      if (typeof channel !== 'string') return channel
      const now = state(call)
      if (now.pendingCount >= now.maxPending) return crowded(call)
      const ready = { ok: true, type: 'db_connect_ready', category: 'ready', message: 'Ready to connect' }
      return json({ ...ready, channel, ...now })
    },
    open(call) {
      const channel = namesChannel(call.query) ? channelOf(call) : null
      if (channel !== null && typeof channel !== 'string') return channel
      return (connection) => {
        const request = { channel, since: call.query.since, address: countedAddress(call.address) }
        return sessions.add(createSession(connection, request, { access, delivery, broadcasts, budget, log }))
      }
    },
    refuseCrowd: crowded,
    broadcast({ body }) {
      if (isBroadcast(body.channel)) {
        if (!isDeclared(body.channel)) throw notFound('Channel')
        broadcasts.send(body)
        return json({ ok: true })
      }
      const target = findTarget(body.channel, findNamespace)
      if (!target) throw invalidField('channel', 'pattern', 'is not a channel of a declared namespace')
      if (!namespaces().get(target.namespace)?.tables.has(target.table)) throw notFound('Table')
      broadcasts.send(body)
      return json({ ok: true })
    },
  }

  return {
    name: 'subscriptions',
    endpoints: subscriptionEndpoints(handlers),
    socketEndpoints: [subscribeEndpoint(handlers)],
    metrics(metrics) {
      metrics.gauge('subscription_views', 'Distinct subscriptions.', () => delivery.sharedQueries)
      metrics.gauge('subscriptions_held', 'Subscriptions paused until their client has read.', () => delivery.paused)
    },
    /** Evaluates the access of every subscription again. */
    async reconfigured() {
      await Promise.all([...sessions].map((session) => session.reset()))
    },
  }
}
