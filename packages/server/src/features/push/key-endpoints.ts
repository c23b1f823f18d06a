/** HTTP endpoints with which service keys send messages, read their results and describe devices. */
import { z } from '../../base/schemas/z.ts'
import { jsonBytes } from '../../base/text/json.ts'
import { invalidField } from '../../errors.ts'
import { type Endpoint, endpoint } from '../../http/endpoint.ts'
import { cursorParam, limitParam } from '../../http/input/query-schema.ts'
import { fitItems, itemBytesMax } from '../../http/replies/large-responses.ts'
import { createListCursors } from '../../http/replies/list-cursor.ts'
import { json } from '../../http/replies/reply.ts'
import {
  pushAnswerSeconds,
  pushDeviceMetadataBytesMax,
  pushLogLimitDefault,
  pushLogLimitMax,
  pushUsersMax,
} from '../../limits/push.ts'
import { type Devices, topicOfAll } from './devices/devices.ts'
import { checkToken } from './devices/subscription.ts'
import type { Logs } from './logs.ts'
import { flatPayloadShape, parsePayload, payloadOf, text } from './message.ts'
import type { Sender } from './recorded-sending.ts'
import {
  common,
  deviceIdSchema,
  deviceSchema,
  done,
  objectSchema,
  platformSchema,
  tokenSchema,
  toPublicDevice,
  topicSchema,
  userIdSchema,
} from './schemas.ts'
import { parseTopic } from './topics/topics.ts'

export interface KeyEndpointsDeps {
  readonly devices: Devices
  readonly sending: Sender
  readonly logs: Logs
  /** Whether messages can be sent to an endpoint of a browser. */
  readonly isReachable: (endpoint: URL) => boolean
  /** Seals cursors. */
  readonly secret: string
  /** Largest JSON response, in bytes. */
  readonly responseBytes: () => number
}

const payload = objectSchema.meta({
  description: 'As for `send`.',
  examples: [{ title: 'News', body: 'There is a new champion.' }],
})
const sendBody = z
  .object({ userId: userIdSchema, ...flatPayloadShape })
  .meta({ examples: [{ userId: '…', title: 'Your move', body: 'Bob has accepted your queen.' }] })
const sendManyBody = z
  .object({ userIds: z.array(userIdSchema).max(pushUsersMax), ...flatPayloadShape })
  .meta({ examples: [{ userIds: ['…'], title: 'Tonight', body: 'The games begin at eight.' }] })
const sendToTokenBody = z.object({ token: tokenSchema, payload, platform: platformSchema.default('web') })
const metadataBody = z.object({ userId: userIdSchema, deviceId: deviceIdSchema, metadata: objectSchema })
const logsQuery = z.object({
  userId: text.optional(),
  limit: limitParam({ default: pushLogLimitDefault, max: pushLogLimitMax }),
  cursor: cursorParam('`cursor` of a page that ended early'),
})

const tallySchema = z.object({ ok: z.literal(true), sent: z.number(), failed: z.number() })
const logSchema = z.object({
  id: z.string(),
  userId: z.string(),
  status: z.enum(['sent', 'failed', 'removed']),
  platform: z.string(),
  title: z.string(),
  body: z.string(),
  timestamp: z.iso.datetime(),
  error: z.string().nullable(),
})

const tally = { 200: { description: 'Number of sent and failed messages', schema: tallySchema } }
const accepted = { 200: { description: 'Accepted', schema: z.object({ success: z.literal(true) }) } }

const sender = {
  ...common,
  method: 'POST',
  credentials: 'key',
  scope: () => 'push:notification:*:send',
  answerSeconds: pushAnswerSeconds,
} as const

export const createKeyEndpoints = (deps: KeyEndpointsDeps): readonly Endpoint[] => [
  ...sendEndpoints(deps),
  ...topicSendEndpoints(deps),
  ...deviceDataEndpoints(deps),
  logsEndpoint(deps),
]

const sendEndpoints = ({ sending, isReachable }: KeyEndpointsDeps): readonly Endpoint[] => [
  endpoint({
    ...sender,
    name: 'push.send',
    paths: ['/api/push/send'],
    summary: 'Send to all devices of a user',
    body: sendBody,
    replies: tally,
    errors: [404, 503],
    handle: async ({ body }) => json({ ok: true, ...(await sending.toUser(body.userId, payloadOf(body))) }),
  }),
  endpoint({
    ...sender,
    requiresRecentSignIn: true,
    name: 'push.sendMany',
    paths: ['/api/push/send-many'],
    summary: 'Send to all devices of many users',
    body: sendManyBody,
    replies: tally,
    errors: [503],
    handle: async ({ body }) => json({ ok: true, ...(await sending.toUsers(body.userIds, payloadOf(body))) }),
  }),
  endpoint({
    ...sender,
    name: 'push.sendToToken',
    paths: ['/api/push/send-to-token'],
    summary: 'Send to a token, registered or not',
    body: sendToTokenBody,
    replies: tally,
    errors: [503],
    async handle({ body }) {
      checkToken(body.token, body.platform, isReachable)
      return json({ ok: true, ...(await sending.toToken(body.token, body.platform, parsePayload(body.payload))) })
    },
  }),
]

const topicSendEndpoints = ({ sending }: KeyEndpointsDeps): readonly Endpoint[] => [
  endpoint({
    ...sender,
    requiresRecentSignIn: true,
    name: 'push.sendToTopic',
    paths: ['/api/push/send-to-topic'],
    summary: 'Send to every device subscribed to a topic',
    body: z.object({ topic: topicSchema, payload }),
    replies: accepted,
    errors: [503],
    async handle({ body }) {
      await sending.toTopic(parseTopic(body.topic), parsePayload(body.payload))
      return json({ success: true })
    },
  }),
  endpoint({
    ...sender,
    requiresRecentSignIn: true,
    name: 'push.broadcast',
    paths: ['/api/push/broadcast'],
    summary: 'Send to every device',
    body: z.object({ payload }),
    replies: accepted,
    errors: [503],
    async handle({ body }) {
      await sending.toTopic(topicOfAll, parsePayload(body.payload))
      return json({ success: true })
    },
  }),
]

const deviceDataEndpoints = ({ devices }: KeyEndpointsDeps): readonly Endpoint[] => [
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
    async handle({ body: { userId, deviceId, metadata } }) {
      if (jsonBytes(metadata) > pushDeviceMetadataBytesMax)
        throw invalidField('metadata', 'max', `must be at most ${pushDeviceMetadataBytesMax} bytes as JSON`)
      await devices.setMetadata(userId, deviceId, metadata)
      return json({ ok: true })
    },
  }),
  endpoint({
    ...common,
    name: 'push.tokens',
    method: 'GET',
    paths: ['/api/push/tokens'],
    summary: 'List the devices of a user',
    credentials: 'key',
    scope: () => 'push:token:*:read',
    query: z.object({ userId: userIdSchema }),
    replies: {
      200: {
        description: 'In order of registration',
        schema: z.object({ tokens: z.array(deviceSchema.extend({ metadata: objectSchema })) }),
      },
    },
    async handle({ query: { userId } }) {
      const found = await devices.list(userId)
      return json({ tokens: found.map((device) => ({ ...toPublicDevice(device), metadata: device.metadata })) })
    },
  }),
]

function logsEndpoint({ logs, secret, responseBytes }: KeyEndpointsDeps): Endpoint {
  const cursors = createListCursors<[id: string]>(secret, 'push logs')
  return endpoint({
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
          logs: z.array(logSchema),
          truncated: z.literal(true).optional().meta({ description: 'The page is incomplete; `cursor` continues it' }),
          cursor: z.string().optional(),
        }),
      },
    },
    async handle({ query: { userId = null, limit, cursor } }) {
      const list = [userId]
      const [after] = cursor === undefined ? [null] : cursors.parse(list, cursor)
      const found = await logs.list(userId, { limit, after })
      const { items, isCut } = await fitItems(found, itemBytesMax(responseBytes()))
      const last = isCut ? items.at(-1) : undefined
      return json({ logs: items, ...(last ? { truncated: true, cursor: cursors.format(list, [last.id]) } : {}) })
    },
  })
}
