/** Limits of the secrets of server code. */
import { KiB } from './units.ts'

/** Keys and certificates are far smaller. */
export const secretValueBytesMax = 64 * KiB
export const secretsMax = 1000
/** Shorter values occur in texts by chance, so they are not redacted. */
export const secretRedactedCharsMin = 6
/** How long a node may serve a secret that was changed through another node. */
export const secretsCachedMs = 10_000
