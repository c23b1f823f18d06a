/**
 * A message as callers write it: its form, its bounds, and what of it may not go into a header or change where it goes.
 * What providers make of it is `fcm-message`'s and `web-push`'s.
 */
import { z } from 'zod'
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

/** What of an FCM message may be written by hand: everything but where it goes. */
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
  data: z.record(z.string(), z.unknown()).optional().describe('Reaches apps as texts, what is no text as JSON.'),
  silent: z.boolean().optional().describe('Wakes the app with `data` and shows nothing.'),
  collapseId: z
    .string()
    .max(pushCollapseIdBytesMax)
    .regex(/^[\x20-\x7e]+$/)
    .optional()
    .describe('A later message with the same id replaces this one.'),
  ttl: z.int().min(0).max(pushTtlSecondsMax).optional().describe('Seconds to keep it for a device that is away.'),
  fcm: fcmOverrides.optional().describe('Laid over the message for FCM; cannot change where it goes.'),
}

/** SPEC's "Push payload object". */
export const payloadShape = z.object({ title: text.min(1), body: text.min(1), ...optional })
export type Payload = z.infer<typeof payloadShape>

/** The payload beside other fields, or under `payload`: what an endpoint's body may hold. */
export const flatPayloadShape = {
  title: text.optional(),
  body: text.optional(),
  ...optional,
  payload: z.record(z.string(), z.unknown()).optional().describe('The payload, instead of beside this.'),
}

/** Throws 400 naming every bad field. */
export function parsePayload(input: unknown): Payload {
  const payload = validate(payloadShape, input)
  if (jsonBytes(payload) > pushPayloadBytesMax)
    throw invalidField('payload', 'max', `must be at most ${pushPayloadBytesMax} bytes as JSON`)
  return payload
}

/** The payload of a body with either form. Throws as `parsePayload`. */
export const payloadOf = (body: JsonObject): Payload => parsePayload(body.payload ?? body)
