/** The HTTP endpoints of subscriptions: parameters, bodies and responses. */
import { z } from 'zod'
import {
  type Call,
  type Endpoint,
  endpoint,
  type Reply,
  type SocketEndpoint,
  socketEndpoint,
} from '../../http/endpoint.ts'
import { socketAuthTimeoutMs } from '../../limits/sockets.ts'
import {
  broadcastBodyBytesMax,
  broadcastEventCharsMax,
  channelCharsMax,
  subscriptionMessageBytesMax,
} from '../../limits/subscriptions.ts'
import { broadcastScope } from './broadcast.ts'

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

const broadcastBody = z.object({
  channel: z.string().min(1).max(channelCharsMax),
  event: z.string().min(1).max(broadcastEventCharsMax),
  payload: z.record(z.string(), z.unknown()),
})

export type ChannelCall = Call<z.infer<typeof channelQuery>>
export type BroadcastCall = Call<unknown, z.infer<typeof broadcastBody>>

interface Handlers {
  readonly check: (call: ChannelCall) => Reply
  readonly open: SocketEndpoint<z.infer<typeof channelQuery>>['open']
  readonly refuseCrowd: (call: ChannelCall) => Reply
  readonly broadcast: (call: BroadcastCall) => Reply
}

const tag = 'Subscriptions'

const readiness = z.object({
  ok: z.boolean(),
  type: z.string(),
  category: z.string(),
  message: z.string(),
  channel: z.string().optional(),
  pendingCount: z.number(),
  maxPending: z.number(),
})

export function subscriptionEndpoints(handlers: Handlers): readonly Endpoint[] {
  return [
    endpoint({
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
      replies: { 200: { description: 'The socket would be opened', schema: readiness } },
      errors: [404],
      handle: handlers.check,
    }),
    endpoint({
      name: 'subscriptions.broadcast',
      method: 'POST',
      paths: ['/api/db/broadcast'],
      tag,
      summary: 'Broadcast an event to all subscribers of a channel',
      description:
        'The channel of a table, or `broadcast:{name}` for a declared broadcast. Arrives as `broadcast_event`. 403 without a service key.',
      credentials: 'key',
      scope: () => broadcastScope,
      rateLimit: 'db',
      body: broadcastBody,
      bodyBytesMax: broadcastBodyBytesMax,
      replies: { 200: { description: 'Sent', schema: z.object({ ok: z.literal(true) }) } },
      errors: [404, 503],
      handle: handlers.broadcast,
    }),
  ]
}

export const subscribeEndpoint = ({ open, refuseCrowd }: Handlers): SocketEndpoint =>
  socketEndpoint({
    name: 'subscriptions.subscribe',
    path: '/api/db/subscribe',
    tag,
    summary: 'Subscribe to channels over a WebSocket',
    kind: 'subscriptions',
    rateLimit: 'db',
    query: channelQuery,
    authTimeoutMs: socketAuthTimeoutMs,
    messageBytesMax: subscriptionMessageBytesMax,
    open,
    tooManyPending: refuseCrowd,
  })
