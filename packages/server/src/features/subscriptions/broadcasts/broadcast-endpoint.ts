/** The endpoint that sends a broadcast, for service keys. */
import { z } from '../../../base/schemas/z.ts'
import { invalidField, notFound } from '../../../errors.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import { broadcastBodyBytesMax, broadcastEventCharsMax, channelCharsMax } from '../../../limits/subscriptions.ts'
import { type FindNamespace, findTarget, hasTable } from '../channels.ts'
import {
  type BroadcastChannels,
  type Broadcasts,
  broadcastScope,
  isBroadcast,
  isDeclaredBroadcast,
} from './broadcast.ts'

export interface BroadcastEndpointDeps {
  readonly broadcasts: Broadcasts
  /** Declared broadcast channels. */
  readonly declared: () => BroadcastChannels
  readonly findNamespace: FindNamespace
}

const broadcastBody = z.object({
  channel: z.string().min(1).max(channelCharsMax),
  event: z.string().min(1).max(broadcastEventCharsMax),
  payload: z.record(z.string(), z.unknown()),
})

export function createBroadcastEndpoint({ broadcasts, declared, findNamespace }: BroadcastEndpointDeps): Endpoint {
  /** Throws 400 and 404. */
  function requireChannel(channel: string): void {
    if (isBroadcast(channel)) {
      if (!isDeclaredBroadcast(declared(), channel)) throw notFound('Channel')
      return
    }
    const target = findTarget(channel, findNamespace)
    if (!target) throw invalidField('channel', 'pattern', 'is not a channel of a declared namespace')
    if (!hasTable(target, findNamespace)) throw notFound('Table')
  }

  return endpoint({
    name: 'subscriptions.broadcast',
    method: 'POST',
    paths: ['/api/db/broadcast'],
    tag: 'Subscriptions',
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
    handle({ body }) {
      requireChannel(body.channel)
      broadcasts.send(body)
      return json({ ok: true })
    },
  })
}
