/** Input of `track`: events from clients, validated one by one so that errors name the invalid ones. */

import type { Caller } from '../../access/caller.ts'
import { z } from '../../base/schemas/z.ts'
import { findDatetime } from '../../base/text/datetime.ts'
import { jsonBytes } from '../../base/text/json.ts'
import { isStorableText } from '../../base/text/text.ts'
import type { AnalyticsConfig } from '../../config/sections/analytics/analytics.ts'
import { accessDenied, authenticationRequired, type FieldError, type FieldErrorCode, invalid } from '../../errors.ts'
import {
  eventNameCharsMax,
  eventPropertiesBytesMax,
  eventPropertiesMax,
  eventPropertyNameCharsMax,
  eventSkewMs,
  eventUserIdCharsMax,
  rawRetentionMs,
  trackEventsMax,
} from '../../limits/analytics.ts'
import { createEventId, minuteOf } from './time.ts'

/** An event as stored. The id contains the time, `minute` is a coarser one for grouping. */
export interface TrackedEvent {
  readonly id: string
  readonly minute: number
  readonly name: string
  readonly userId: string | null
  /** JSON of an object. */
  readonly properties: string
}

const storable = 'must be well-formed text without NUL'
/** Names with a special meaning in JavaScript, not accepted as properties. */
const reservedNames: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])
const printable = new RegExp(`^[^\\p{C}]{1,${eventPropertyNameCharsMax}}$`, 'u')

interface PropertyMistake {
  readonly path: readonly string[]
  readonly code: FieldErrorCode
  readonly message: string
}

function findPropertyMistake(properties: unknown): PropertyMistake | null {
  const wrong = (code: FieldErrorCode, message: string, ...path: readonly string[]) => ({ path, code, message })
  if (typeof properties !== 'object' || properties === null || Array.isArray(properties))
    return wrong('type', 'must be an object')
  const entries = Object.entries(properties)
  if (entries.length > eventPropertiesMax) return wrong('max', `must have at most ${eventPropertiesMax} fields`)
  for (const [name, value] of entries) {
    if (!printable.test(name) || reservedNames.has(name)) return wrong('pattern', 'is not a valid property name', name)
    const isFlat = typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value)
    if (!isFlat) return wrong('type', 'must be a string, a number, true or false', name)
    if (typeof value === 'string' && !isStorableText(value)) return wrong('pattern', storable, name)
  }
  if (jsonBytes(properties) > eventPropertiesBytesMax)
    return wrong('max', `must be at most ${eventPropertiesBytesMax} bytes as JSON`)
  return null
}

const event = z.strictObject({
  name: z.string().min(1).max(eventNameCharsMax).refine(isStorableText, storable),
  properties: z
    .unknown()
    .superRefine((value, context) => {
      const mistake = value === undefined ? null : findPropertyMistake(value)
      if (mistake === null) return
      const { path, code, message } = mistake
      context.addIssue({ code: 'custom', path: [...path], message, params: { code }, input: value })
    })
    .optional()
    .meta({
      description: `At most ${eventPropertiesMax} strings, numbers and booleans, ${eventPropertiesBytesMax} bytes as JSON in total`,
    }),
  timestamp: z
    .union([z.string(), z.number()])
    .optional()
    .meta({ description: 'ISO 8601, or milliseconds since 1970, within the last 90 days; defaults to now' }),
  userId: z
    .string()
    .min(1)
    .max(eventUserIdCharsMax)
    .refine(isStorableText, storable)
    .optional()
    .meta({ description: 'The user of the event; accepted from service keys only' }),
})

export const trackBody = z
  .strictObject({ events: z.array(event).min(1).max(trackEventsMax) })
  .meta({ examples: [{ events: [{ name: 'purchase', properties: { amount: 12.5 } }] }] })
export type TrackBody = z.infer<typeof trackBody>

/** Milliseconds since 1970, or the validation error. */
function readTimestamp(written: string | number | undefined, nowMs: number): number | FieldError {
  if (written === undefined) return nowMs
  const iso = typeof written === 'number' ? null : findDatetime(written)
  const ms = typeof written === 'number' ? Math.floor(written) : iso === null ? Number.NaN : Date.parse(iso)
  if (Number.isNaN(ms)) return { code: 'pattern', message: 'must be an ISO 8601 timestamp' }
  if (ms > nowMs + eventSkewMs) return { code: 'max', message: 'must not be in the future' }
  if (ms < nowMs - rawRetentionMs) return { code: 'min', message: 'must be within the last 90 days' }
  return Math.min(ms, nowMs)
}

/** The events of a body, in its order. Throws 400 that names every invalid one. */
export function parseEvents({ events }: TrackBody, caller: Caller, nowMs: number): TrackedEvent[] {
  const wrong: Record<string, FieldError> = {}
  const own = caller.kind === 'user' ? caller.auth.id : null
  const parsed = events.map(({ name, properties = {}, timestamp, userId }, at) => {
    const ms = readTimestamp(timestamp, nowMs)
    if (typeof ms !== 'number') wrong[`events[${at}].timestamp`] = ms
    if (userId !== undefined && caller.kind !== 'service')
      wrong[`events[${at}].userId`] = { code: 'unknown', message: 'requires a service key' }
    const [id, minute] = typeof ms === 'number' ? [createEventId(ms, at), minuteOf(ms)] : ['', 0]
    return { id, minute, name, userId: userId ?? own, properties: JSON.stringify(properties) }
  })
  if (Object.keys(wrong).length > 0) throw invalid(wrong)
  return parsed
}

/** Throws if the configuration does not permit this caller or these events. */
export function checkPermitted(events: readonly TrackedEvent[], caller: Caller, config: AnalyticsConfig): void {
  if (caller.kind === 'service') return
  if (!config.anonymous && caller.kind === 'anonymous') throw authenticationRequired()
  if (!config.anonymous && caller.kind === 'user' && caller.auth.isAnonymous) throw accessDenied()
  const { events: names } = config
  const unknown = names === null ? [] : [...events.entries()].filter(([, { name }]) => !names.has(name))
  if (unknown.length === 0) return
  const wrong = { code: 'unknown', message: 'is not an event declared in the configuration' } as const
  throw invalid(Object.fromEntries(unknown.map(([at]) => [`events[${at}].name`, wrong])))
}
