/**
 * The listener's bound on request bodies: a second line of defense behind the bounds that endpoints enforce.
 */
import type { BucketDefinition } from '../access/definition.ts'
import type { Log } from '../base/log.ts'
import { listenerBodyBytesMin, listenerBodyFactor } from '../limits/api.ts'
import { fileBytesMax, formOverheadBytesMax } from '../limits/storage.ts'

type Buckets = ReadonlyMap<string, BucketDefinition>

/**
 * Bytes. A multiple of the largest file of any bucket, because the runtime's 413 has no body: slightly too large files
 * should get the endpoint's error.
 */
export function listenerBodyBytes(buckets: Buckets): number {
  const largest = Math.max(0, ...[...buckets.values()].map((bucket) => bucket.fileBytesMax))
  return Math.min(
    Math.max(largest * listenerBodyFactor, listenerBodyBytesMin) + formOverheadBytesMax,
    fileBytesMax + formOverheadBytesMax,
  )
}

/** Warns if a reloaded configuration allows files that the listener refuses until a restart. */
export function warnOfBodyBound(buckets: Buckets, listenerBytes: number, log: Log): void {
  for (const { name, fileBytesMax } of buckets.values())
    if (fileBytesMax + formOverheadBytesMax > listenerBytes)
      log.warn('http.body_limit_needs_restart', { bucket: name, fileBytesMax, listenerBytes })
}
