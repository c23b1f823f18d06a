/** Limits of mails that server code sends. */
import { KiB } from './units.ts'

/** Text and HTML of a mail together, in characters; some providers cut off messages of more than 100 KB. */
export const functionMailCharsMax = 512 * KiB
export const functionMailSubjectCharsMax = 500
/** Attempts after the first: with the backoff about four hours. */
export const functionMailRetries = 8
/** A key of the sender's own, such as the id of a change. */
export const functionMailKeyCharsMax = 256
