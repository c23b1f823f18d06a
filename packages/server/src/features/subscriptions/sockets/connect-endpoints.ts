/**
 * The socket endpoint of subscriptions, and connect-check, which reports whether an upgrade would succeed. Access to
 * the channel is checked later, once the caller is authenticated.
 */

import { countedAddress } from '../../../base/network/address.ts'
import { z } from '../../../base/schemas/z.ts'
import type { ApiError, ErrorSlug } from '../../../errors.ts'
import {
  type Call,
  type Endpoint,
  endpoint,
  type Reply,
  type SocketEndpoint,
  socketEndpoint,
} from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import type { Connection, SocketHandler } from '../../../http/sockets/socket-handler.ts'
import type { Sockets } from '../../../http/sockets/sockets.ts'
import { pendingSocketsMax, socketAuthTimeoutMs } from '../../../limits/sockets.ts'
import { subscriptionMessageBytesMax } from '../../../limits/subscriptions.ts'
import { type BroadcastChannels, isBroadcast, isDeclaredBroadcast } from '../broadcasts/broadcast.ts'
import { type FindNamespace, findTarget, hasTable, namesChannel, parseChannelQuery } from '../channels.ts'
import type { SubscriptionServerMessage } from '../protocol.ts'
import type { UpgradeRequest } from './session.ts'

export interface ConnectDeps {
  readonly findNamespace: FindNamespace
  /** Declared broadcast channels. */
  readonly broadcasts: () => BroadcastChannels
  readonly sockets: Pick<Sockets, 'pending'>
  readonly openSession: (
    connection: Connection<SubscriptionServerMessage>,
    request: UpgradeRequest,
  ) => SocketHandler<SubscriptionServerMessage>
}

const tag = 'Subscriptions'

const channelQuery = z.object({
  channel: z
    .string()
    .optional()
    .describe('The channel; otherwise `namespace` and `table`. A socket may be opened without a channel.'),
  namespace: z.string().optional(),
  table: z.string().optional(),
  instanceId: z.string().optional().describe('The database of a dynamic namespace.'),
  docId: z.string().optional().describe('Subscribes to one record only.'),
  since: z.string().optional().describe('A cursor to resume from when the channel is subscribed to.'),
})

type ConnectCall = Call<z.infer<typeof channelQuery>>

const readinessSchema = z.object({
  ok: z.boolean(),
  type: z.string(),
  category: z.string(),
  message: z.string(),
  channel: z.string().optional(),
  pendingCount: z.number(),
  maxPending: z.number(),
})

const rejections = {
  400: { slug: 'invalid-input', type: 'db_connect_invalid_request', category: 'request' },
  404: { slug: 'not-found', type: 'db_namespace_not_configured', category: 'config' },
  429: { slug: 'rate-limited', type: 'db_connect_rate_limited', category: 'rate_limit' },
} as const satisfies Readonly<Record<number, { slug: ErrorSlug; type: string; category: string }>>

export class ConnectEndpoints {
  readonly #deps: ConnectDeps

  constructor(deps: ConnectDeps) {
    this.#deps = deps
  }

  get check(): Endpoint {
    return endpoint({
      name: 'subscriptions.check',
      method: 'GET',
      paths: ['/api/db/connect-check'],
      tag,
      summary: 'Check whether a WebSocket to /api/db/subscribe with the same query would be opened',
      description:
        'An error has the same properties with `ok` false: 400 without a valid channel, 404 for a namespace or table that is not declared, 429 while too many sockets from this address are unauthenticated.',
      credentials: 'public',
      rateLimit: 'db',
      query: channelQuery,
      replies: { 200: { description: 'The socket would be opened', schema: readinessSchema } },
      errors: [404],
      handle: (call) => this.#checkReadiness(call),
    })
  }

  get socket(): SocketEndpoint {
    return socketEndpoint({
      name: 'subscriptions.subscribe',
      path: '/api/db/subscribe',
      tag,
      summary: 'Subscribe to channels over a WebSocket',
      kind: 'subscriptions',
      rateLimit: 'db',
      query: channelQuery,
      authTimeoutMs: socketAuthTimeoutMs,
      messageBytesMax: subscriptionMessageBytesMax,
      open: (call: ConnectCall) => {
        const channel = namesChannel(call.query) ? this.#findChannel(call) : null
        if (channel !== null && typeof channel !== 'string') return channel
        const request = { channel, since: call.query.since, address: countedAddress(call.address) }
        return (connection: Connection<SubscriptionServerMessage>) => this.#deps.openSession(connection, request)
      },
      tooManyPending: (call: ConnectCall) => this.#tooManyPending(call),
    })
  }

  #checkReadiness(call: ConnectCall): Reply {
    const channel = this.#findChannel(call)
    if (typeof channel !== 'string') return channel
    const state = this.#describe(call)
    if (state.pendingCount >= state.maxPending) return this.#tooManyPending(call)
    const ready = { ok: true, type: 'db_connect_ready', category: 'ready', message: 'Ready to connect' }
    return json({ ...ready, channel, ...state })
  }

  /** The channel that the query names, or the response that rejects it. */
  #findChannel(call: ConnectCall): string | Reply {
    const { findNamespace, broadcasts } = this.#deps
    let channel: string
    try {
      channel = parseChannelQuery(call.query, findNamespace)
    } catch (error) {
      return this.#reject(call, 400, (error as ApiError).message)
    }
    if (isBroadcast(channel)) {
      if (isDeclaredBroadcast(broadcasts(), channel)) return channel
      return this.#reject(call, 404, 'This broadcast channel is not configured', channel)
    }
    const target = findTarget(channel, findNamespace)
    if (target && hasTable(target, findNamespace)) return channel
    if (target) return this.#reject(call, 404, 'This table is not configured', channel)
    const [, namespace = ''] = channel.split(':')
    return channel.startsWith('dblive:') && namespace !== '' && !findNamespace(namespace)
      ? this.#reject(call, 404, 'This namespace is not configured', channel)
      : this.#reject(call, 400, 'This is not a channel')
  }

  #tooManyPending(call: ConnectCall): Reply {
    const message = 'Too many connections from this address are open or waiting for authentication'
    if (!namesChannel(call.query)) return this.#reject(call, 429, message)
    const channel = this.#findChannel(call)
    return typeof channel === 'string' ? this.#reject(call, 429, message, channel) : channel
  }

  #reject(call: ConnectCall, status: keyof typeof rejections, message: string, channel?: string): Reply {
    const named = channel === undefined ? {} : { channel }
    const body = { ok: false, code: status, ...rejections[status], message, ...named, ...this.#describe(call) }
    // A socket is pending for that long at most.
    const headers = { 'Retry-After': String(socketAuthTimeoutMs / 1000) }
    return status === 429 ? json(body, status, headers) : json(body, status)
  }

  #describe({ address }: ConnectCall) {
    return {
      pendingCount: this.#deps.sockets.pending('subscriptions', countedAddress(address)),
      maxPending: pendingSocketsMax,
    }
  }
}
