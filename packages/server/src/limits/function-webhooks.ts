/** Limits of outgoing webhooks. */
import { KiB } from './units.ts'

const [second, minute, hour] = [1000, 60_000, 3_600_000] as const

/** Pauses after failed attempts, as Standard Webhooks 1.0 recommends: ten attempts within about three days. */
export const webhookPausesMs: readonly number[] = [
  5 * second,
  5 * minute,
  30 * minute,
  2 * hour,
  5 * hour,
  10 * hour,
  14 * hour,
  20 * hour,
  24 * hour,
]
/** The longest pause that a receiver can ask for by `Retry-After`. */
export const webhookRetryAfterMaxMs = 24 * hour
/** How long a receiver may take; the specification recommends 15 to 30 seconds. */
export const webhookTimeoutMs = 20 * second
/** Body of a webhook; the specification recommends small messages. */
export const webhookBodyBytesMax = 256 * KiB
