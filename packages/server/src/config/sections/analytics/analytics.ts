/** The section `analytics`: what users write it with, its shape, and what the program makes of it. */
import { z } from 'zod'
import { parseDuration } from '../../../base/text/duration.ts'
import {
  eventNameCharsMax,
  eventNamesMax,
  rawEventsBytesMax,
  rawEventsBytesMin,
  rawRetentionMs,
  requestLogBytesMax,
  requestLogBytesMin,
  requestLogRetentionMs,
} from '../../../limits/analytics.ts'
import { byteSize, parsedWith, strictObject } from '../../shape-parts.ts'

/** As the program runs on it. */
export interface AnalyticsConfig {
  /** Null for any. */
  readonly events: ReadonlySet<string> | null
  readonly anonymous: boolean
  readonly requestLog: boolean
  /** Of rows of single requests. */
  readonly requestRows: { readonly retentionMs: number; readonly bytesMax: number }
  readonly rawEvents: { readonly bytesMax: number }
}

const requestLogShape = strictObject({
  retention: parsedWith(parseDuration)
    .refine((ms) => ms <= rawRetentionMs, 'must be at most 90d')
    .optional(),
  maxSize: byteSize.refine((bytes) => bytes >= requestLogBytesMin, 'must be at least 1mb').optional(),
})

const rawEventsShape = strictObject({
  maxSize: byteSize.refine((bytes) => bytes >= rawEventsBytesMin, 'must be at least 1mb').optional(),
})

export const analyticsShape = strictObject({
  events: z.array(z.string().min(1).max(eventNameCharsMax)).min(1).max(eventNamesMax).optional(),
  anonymous: z.boolean().default(true),
  requestLog: z.union([z.boolean(), requestLogShape], { error: 'must be true, false or an object' }).default(true),
  rawEvents: rawEventsShape.default({}),
})
export type WrittenAnalytics = z.output<typeof analyticsShape>

export function createAnalyticsConfig({ events, anonymous, requestLog, rawEvents }: WrittenAnalytics): AnalyticsConfig {
  const rows = typeof requestLog === 'boolean' ? {} : requestLog
  return Object.freeze({
    events: events === undefined ? null : new Set(events),
    anonymous,
    requestLog: requestLog !== false,
    requestRows: Object.freeze({
      retentionMs: rows.retention ?? requestLogRetentionMs,
      bytesMax: rows.maxSize ?? requestLogBytesMax,
    }),
    rawEvents: Object.freeze({ bytesMax: rawEvents.maxSize ?? rawEventsBytesMax }),
  })
}
