/** The section `analytics`: what users write it with, its shape, and what the program makes of it. */
import { z } from 'zod'
import { eventNameCharsMax, eventNamesMax } from '../limits-analytics.ts'
import { exactly } from './shape-parts.ts'

/** As it is written. */
export interface AnalyticsOptions {
  /** The names events may have, but for those a service key sends; left out, any. */
  readonly events?: readonly string[]
  /** False: only users who have signed in with something, and service keys, may send events; default true. */
  readonly anonymous?: boolean
  /** False: requests are not counted, and reports on them stay empty; default true. */
  readonly requestLog?: boolean
}

/** As the program runs on it. */
export interface AnalyticsConfig {
  /** Null for any. */
  readonly events: ReadonlySet<string> | null
  readonly anonymous: boolean
  readonly requestLog: boolean
}

export const analyticsShape = exactly({
  events: z.array(z.string().min(1).max(eventNameCharsMax)).min(1).max(eventNamesMax).optional(),
  anonymous: z.boolean().default(true),
  requestLog: z.boolean().default(true),
})
export type WrittenAnalytics = z.output<typeof analyticsShape>

export const createAnalyticsConfig = ({ events, anonymous, requestLog }: WrittenAnalytics): AnalyticsConfig =>
  Object.freeze({ events: events === undefined ? null : new Set(events), anonymous, requestLog })
