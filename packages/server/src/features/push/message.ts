/**
 * The payload of a message: its schema, its bounds, and the protected fields. `fcm-message` and `web-push` convert it
 * for providers.
 */
import { z } from '../../base/schemas/z.ts'
import { type JsonObject, jsonBytes } from '../../base/text/json.ts'
import { isStorableText } from '../../base/text/text.ts'
import { invalidField } from '../../errors.ts'
import { validate } from '../../http/input/validate.ts'
import {
  pushCollapseIdBytesMax,
  pushImageCharsMax,
  pushPayloadBytesMax,
  pushSoundCharsMax,
  pushTtlSecondsMax,
} from '../../limits/push.ts'

/** Fields of an FCM message that may be overridden: all but the target. */
const overridable = ['data', 'notification', 'android', 'webpush', 'apns', 'fcm_options', 'fcmOptions']

/** Text that every engine can store. */
export const text = z
  .string()
  .refine(isStorableText, { message: 'must be text without NUL', params: { code: 'pattern' } })

const withPattern = (message: string) => ({ message, params: { code: 'pattern' } })

const isWebUrl = (value: string): boolean => /^https?:$/.test(URL.parse(value)?.protocol ?? '')

const fcmOverrides = z.record(z.string(), z.unknown()).superRefine((value, context) => {
  for (const key of Object.keys(value))
    if (!overridable.includes(key))
      context.addIssue({ code: 'custom', path: [key], message: 'cannot be set here', params: { code: 'unknown' } })
})

const optional = {
  image: text.max(pushImageCharsMax).refine(isWebUrl, withPattern('must be an http or https URL')).optional(),
  sound: text.min(1).max(pushSoundCharsMax).optional(),
  badge: z.int().min(0).max(2_147_483_647).optional(),
  data: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('Apps receive strings; other values are sent as JSON text.'),
  silent: z.boolean().optional().describe('Delivers `data` in the background without a notification.'),
  collapseId: z
    .string()
    .max(pushCollapseIdBytesMax)
    .regex(/^[\x20-\x7e]+$/)
    .optional()
    .describe('A later message with the same id replaces this one.'),
  ttl: z.int().min(0).max(pushTtlSecondsMax).optional().describe('Seconds to keep the message for an offline device.'),
  fcm: fcmOverrides.optional().describe('Merged into the FCM message; cannot change its target.'),
}

/** The push payload. */
export const payloadShape = z.object({ title: text.min(1), body: text.min(1), ...optional })
export type Payload = z.infer<typeof payloadShape>

/** The payload's fields beside other fields, or under `payload`. */
export const flatPayloadShape = {
  title: text.optional(),
  body: text.optional(),
  ...optional,
  payload: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('The payload as a nested object, in place of its fields at the top level.'),
}

/** Throws 400 that names every invalid field. */
export function parsePayload(input: unknown): Payload {
  const payload = validate(payloadShape, input)
  if (jsonBytes(payload) > pushPayloadBytesMax)
    throw invalidField('payload', 'max', `must be at most ${pushPayloadBytesMax} bytes as JSON`)
  return payload
}

/** The payload of a body with either form. Throws as `parsePayload`. */
export const payloadOf = (body: JsonObject): Payload => parsePayload(body.payload ?? body)
