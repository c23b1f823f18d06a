/** Schemas that several endpoints of push notifications share, and the public representation of a device. */
import { z } from '../../base/schemas/z.ts'
import { formatDatetime } from '../../base/text/datetime.ts'
import { pushDeviceIdCharsMax, pushTokenCharsMax } from '../../limits/push.ts'
import type { Device } from './devices/devices.ts'
import { platforms } from './devices/subscription.ts'
import { text } from './message.ts'

export const common = { tag: 'Push', rateLimit: 'push' } as const

export const deviceIdSchema = text.min(1).max(pushDeviceIdCharsMax)
export const userIdSchema = text.min(1).max(pushDeviceIdCharsMax)
export const tokenSchema = text.min(1).max(pushTokenCharsMax)
export const platformSchema = z.enum(platforms)
export const topicSchema = z.string().min(1)
export const objectSchema = z.record(z.string(), z.unknown())

export const deviceSchema = z.object({
  id: z.string(),
  token: z.string(),
  platform: platformSchema,
  userId: z.string(),
  createdAt: z.iso.datetime(),
})

export const done = { 200: { description: 'Done', schema: z.object({ ok: z.literal(true) }) } }

/** A device as `deviceSchema` describes it, without the metadata that service keys write. */
export const toPublicDevice = ({ id, token, platform, userId, createdAtMs }: Device) => ({
  id,
  token,
  platform,
  userId,
  createdAt: formatDatetime(createdAtMs),
})
