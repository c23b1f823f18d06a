/** HTTP endpoints with which users register their devices and subscribe them to topics. */

import { requireUser } from '../../../access/caller.ts'
import { z } from '../../../base/schemas/z.ts'
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { json } from '../../../http/replies/reply.ts'
import { pushAnswerSeconds } from '../../../limits/push.ts'
import {
  common,
  deviceIdSchema,
  deviceSchema,
  done,
  platformSchema,
  tokenSchema,
  toPublicDevice,
  topicSchema,
} from '../schemas.ts'
import type { ChangeMembership } from '../topics/topic-membership.ts'
import type { Devices } from './devices.ts'
import { checkToken } from './subscription.ts'

export interface DeviceEndpointsDeps {
  readonly devices: Devices
  readonly changeMembership: ChangeMembership
  /** Whether messages can be sent to an endpoint of a browser. */
  readonly isReachable: (endpoint: URL) => boolean
  /** Called after a change of devices. */
  readonly onDevicesChanged: () => void
}

const registerBody = z.object({ deviceId: deviceIdSchema, token: tokenSchema, platform: platformSchema })
const unregisterBody = z
  .object({ token: tokenSchema.optional(), deviceId: deviceIdSchema.optional() })
  .refine((body) => body.token !== undefined || body.deviceId !== undefined, {
    path: ['token'],
    params: { code: 'required' },
    error: 'is required unless deviceId is given',
  })
const topicBody = z.object({ topic: topicSchema })

const client = { ...common, method: 'POST', credentials: 'user' } as const

export const createDeviceEndpoints = (deps: DeviceEndpointsDeps): readonly Endpoint[] => [
  ...registrationEndpoints(deps),
  ...topicEndpoints(deps),
]

const registrationEndpoints = ({
  devices,
  isReachable,
  onDevicesChanged,
}: DeviceEndpointsDeps): readonly Endpoint[] => [
  endpoint({
    ...client,
    name: 'push.register',
    paths: ['/api/push/register'],
    summary: 'Register a device of the caller',
    description:
      'The token is an FCM token or, for `web`, a web push subscription as JSON. The device subscribes to the topic `all`. A token registered by another user is transferred to the caller.',
    body: registerBody,
    replies: { 200: { description: 'The device', schema: deviceSchema } },
    errors: [403],
    async handle({ caller, body: { deviceId: id, token, platform } }) {
      const user = requireUser(caller)
      checkToken(token, platform, isReachable)
      const device = await devices.register(user, { id, token, platform })
      onDevicesChanged()
      return json(toPublicDevice(device))
    },
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
    async handle({ caller, body }) {
      await devices.unregister(requireUser(caller).auth.id, body)
      onDevicesChanged()
      return json({ ok: true })
    },
  }),
]

const topicEndpoints = ({ changeMembership }: DeviceEndpointsDeps): readonly Endpoint[] => [
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
    async handle({ caller, body: { topic } }) {
      const { changed, failed } = await changeMembership(requireUser(caller).auth.id, topic, true)
      return json({ ok: true, subscribed: changed, failed })
    },
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
        description: 'Number of unsubscribed devices, and of those that are still pending',
        schema: z.object({ ok: z.literal(true), unsubscribed: z.number(), failed: z.number() }),
      },
    },
    errors: [403, 404, 503],
    async handle({ caller, body: { topic } }) {
      const { changed, failed } = await changeMembership(requireUser(caller).auth.id, topic, false)
      return json({ ok: true, unsubscribed: changed, failed })
    },
  }),
]
