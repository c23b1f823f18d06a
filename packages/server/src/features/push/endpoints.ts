/** HTTP endpoints of push notifications. */
import { z } from 'zod'
import { type Call, type Endpoint, endpoint, type Reply } from '../../http/endpoint.ts'
import { cursorParam, limitParam } from '../../http/input/query-schema.ts'
import {
  pushAnswerSeconds,
  pushDeviceIdCharsMax,
  pushLogLimitDefault,
  pushLogLimitMax,
  pushTokenCharsMax,
  pushUsersMax,
} from '../../limits/push.ts'
import { flatPayloadShape, text } from './message.ts'
import { platforms } from './subscription.ts'

const name = text.min(1)
const deviceId = name.max(pushDeviceIdCharsMax)
const token = name.max(pushTokenCharsMax)
const userId = name.max(pushDeviceIdCharsMax)
const platform = z.enum(platforms)
const anyObject = z.record(z.string(), z.unknown())

const payload = anyObject.meta({
  description: 'As for `send`.',
  examples: [{ title: 'News', body: 'There is a new champion.' }],
})

const registerBody = z.object({ deviceId, token, platform })
const unregisterBody = z
  .object({ token: token.optional(), deviceId: deviceId.optional() })
  .refine((body) => body.token !== undefined || body.deviceId !== undefined, {
    path: ['token'],
    params: { code: 'required' },
    error: 'is required unless deviceId is given',
  })
const topicBody = z.object({ topic: z.string().min(1) })
const sendBody = z
  .object({ userId, ...flatPayloadShape })
  .meta({ examples: [{ userId: '…', title: 'Your move', body: 'Bob has accepted your queen.' }] })
const sendManyBody = z
  .object({ userIds: z.array(userId).max(pushUsersMax), ...flatPayloadShape })
  .meta({ examples: [{ userIds: ['…'], title: 'Tonight', body: 'The games begin at eight.' }] })
const sendToTokenBody = z.object({ token, payload, platform: platform.default('web') })
const sendToTopicBody = z.object({ topic: z.string().min(1), payload })
const broadcastBody = z.object({ payload })
const metadataBody = z.object({ userId, deviceId, metadata: anyObject })
const tokensQuery = z.object({ userId })
const logsQuery = z.object({
  userId: text.optional(),
  limit: limitParam({ default: pushLogLimitDefault, max: pushLogLimitMax }),
  cursor: cursorParam('`cursor` of a page that ended early'),
})

const device = z.object({
  id: z.string(),
  token: z.string(),
  platform,
  userId: z.string(),
  createdAt: z.iso.datetime(),
})
const deviceWithMetadata = device.extend({ metadata: anyObject })
const tally = z.object({ ok: z.literal(true), sent: z.number(), failed: z.number() })
const logEntry = z.object({
  id: z.string(),
  userId: z.string(),
  status: z.enum(['sent', 'failed', 'removed']),
  platform: z.string(),
  title: z.string(),
  body: z.string(),
  timestamp: z.iso.datetime(),
  error: z.string().nullable(),
})

const done = { 200: { description: 'Done', schema: z.object({ ok: z.literal(true) }) } }
const accepted = { 200: { description: 'Accepted', schema: z.object({ success: z.literal(true) }) } }

type HandlerReply = Reply | Promise<Reply>
type BodyHandler<Body extends z.ZodType> = (call: Call<unknown, z.output<Body>>) => HandlerReply
type QueryHandler<Query extends z.ZodType> = (call: Call<z.output<Query>>) => HandlerReply

export interface PushHandlers {
  readonly register: BodyHandler<typeof registerBody>
  readonly unregister: BodyHandler<typeof unregisterBody>
  readonly subscribe: BodyHandler<typeof topicBody>
  readonly unsubscribe: BodyHandler<typeof topicBody>
  readonly send: BodyHandler<typeof sendBody>
  readonly sendMany: BodyHandler<typeof sendManyBody>
  readonly sendToToken: BodyHandler<typeof sendToTokenBody>
  readonly sendToTopic: BodyHandler<typeof sendToTopicBody>
  readonly broadcast: BodyHandler<typeof broadcastBody>
  readonly setMetadata: BodyHandler<typeof metadataBody>
  readonly tokens: QueryHandler<typeof tokensQuery>
  readonly logs: QueryHandler<typeof logsQuery>
}

const common = { tag: 'Push', rateLimit: 'push' } as const
const client = { ...common, method: 'POST', credentials: 'user' } as const
const sender = {
  ...common,
  method: 'POST',
  credentials: 'key',
  scope: () => 'push:notification:*:send',
  answerSeconds: pushAnswerSeconds,
} as const

export const pushEndpoints = (handlers: PushHandlers): readonly Endpoint[] => [
  endpoint({
    ...client,
    name: 'push.register',
    paths: ['/api/push/register'],
    summary: 'Register a device of the caller',
    description:
      'The token is an FCM token or, for `web`, a web push subscription as JSON. The device subscribes to the topic `all`. A token registered by another user is transferred to the caller.',
    body: registerBody,
    replies: { 200: { description: 'The device', schema: device } },
    errors: [403],
    handle: handlers.register,
  }),
  endpoint({
    ...client,
    name: 'push.unregister',
    paths: ['/api/push/unregister'],
    summary: 'Unregister a device of the caller',
    description: 'Selects by `token` or `deviceId`; with both, every device that matches either.',
    body: unregisterBody,
    replies: done,
    errors: [403],
    handle: handlers.unregister,
  }),
  endpoint({
    ...client,
    name: 'push.subscribe',
    paths: ['/api/push/topic/subscribe'],
    answerSeconds: pushAnswerSeconds,
    summary: 'Subscribe all devices of the caller to a topic',
    body: topicBody,
    replies: {
      200: {
        description: 'Number of subscribed devices, and of those whose subscription is pending',
        schema: z.object({ ok: z.literal(true), subscribed: z.number(), failed: z.number() }),
      },
    },
    errors: [403, 404, 503],
    handle: handlers.subscribe,
  }),
  endpoint({
    ...client,
    name: 'push.unsubscribe',
    paths: ['/api/push/topic/unsubscribe'],
    answerSeconds: pushAnswerSeconds,
    summary: 'Unsubscribe all devices of the caller from a topic',
    body: topicBody,
    replies: {
      200: {
        description: 'How many do not',
        schema: z.object({ ok: z.literal(true), unsubscribed: z.number(), failed: z.number() }),
      },
    },
    errors: [403, 404, 503],
    handle: handlers.unsubscribe,
  }),
  endpoint({
    ...sender,
    name: 'push.send',
    paths: ['/api/push/send'],
    summary: 'Send to all devices of a user',
    body: sendBody,
    replies: { 200: { description: 'Number of sent and failed messages', schema: tally } },
    errors: [404, 503],
    handle: handlers.send,
  }),
  endpoint({
    ...sender,
    name: 'push.sendMany',
    paths: ['/api/push/send-many'],
    summary: 'Send to all devices of many users',
    body: sendManyBody,
    replies: { 200: { description: 'Number of sent and failed messages', schema: tally } },
    errors: [503],
    handle: handlers.sendMany,
  }),
  endpoint({
    ...sender,
    name: 'push.sendToToken',
    paths: ['/api/push/send-to-token'],
    summary: 'Send to a token, registered or not',
    body: sendToTokenBody,
    replies: { 200: { description: 'Number of sent and failed messages', schema: tally } },
    errors: [503],
    handle: handlers.sendToToken,
  }),
  endpoint({
    ...sender,
    name: 'push.sendToTopic',
    paths: ['/api/push/send-to-topic'],
    summary: 'Send to every device subscribed to a topic',
    body: sendToTopicBody,
    replies: accepted,
    errors: [503],
    handle: handlers.sendToTopic,
  }),
  endpoint({
    ...sender,
    name: 'push.broadcast',
    paths: ['/api/push/broadcast'],
    summary: 'Send to every device',
    body: broadcastBody,
    replies: accepted,
    errors: [503],
    handle: handlers.broadcast,
  }),
  endpoint({
    ...common,
    name: 'push.setMetadata',
    method: 'PATCH',
    paths: ['/api/push/tokens'],
    summary: 'Replace the metadata of a device',
    credentials: 'key',
    scope: () => 'push:token:*:write',
    body: metadataBody,
    replies: done,
    errors: [404],
    handle: handlers.setMetadata,
  }),
  endpoint({
    ...common,
    name: 'push.tokens',
    method: 'GET',
    paths: ['/api/push/tokens'],
    summary: 'List the devices of a user',
    credentials: 'key',
    scope: () => 'push:token:*:read',
    query: tokensQuery,
    replies: {
      200: {
        description: 'In order of registration',
        schema: z.object({ tokens: z.array(deviceWithMetadata) }),
      },
    },
    handle: handlers.tokens,
  }),
  endpoint({
    ...common,
    name: 'push.logs',
    method: 'GET',
    paths: ['/api/push/logs'],
    summary: 'List the messages of the last 24 hours with their results',
    credentials: 'key',
    scope: () => 'push:log:*:read',
    query: logsQuery,
    replies: {
      200: {
        description: 'Newest first',
        schema: z.object({
          logs: z.array(logEntry),
          truncated: z.literal(true).optional().meta({ description: 'The page is incomplete; `cursor` continues it' }),
          cursor: z.string().optional(),
        }),
      },
    },
    handle: handlers.logs,
  }),
]
