/** Limits of what functions send to others: mail and webhooks. */
import { KiB } from './units.ts'

// Mail
/** Text and HTML of a mail together, in characters; some providers cut off messages of more than 100 KB. */
export const functionMailCharsMax = 512 * KiB
export const functionMailSubjectCharsMax = 500
/** Attempts after the first: with the backoff about four hours. */
export const functionMailRetries = 8
/** A key of the sender's own, such as the id of a change. */
export const functionMailKeyCharsMax = 256

// Webhooks
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
