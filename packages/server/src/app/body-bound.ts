/**
 * The runtime's own bound on request bodies: a second line behind the endpoints, each of which counts against its own.
 * How they count is `http/request-body`'s.
 */
import type { BucketDefinition } from '../access/definition.ts'
import type { Log } from '../base/log.ts'
import { listenerBodyBytesMin, listenerBodyFactor } from '../limits/api.ts'
import { fileBytesMax, formOverheadBytesMax } from '../limits/storage.ts'

type Buckets = ReadonlyMap<string, BucketDefinition>

/**
 * Bytes. Above the largest file of any bucket by a factor, because the runtime's 413 has no body: an ordinary mistake
 * should meet the endpoint's own.
 */
export function listenerBodyBytes(buckets: Buckets): number {
  const largest = Math.max(0, ...[...buckets.values()].map((bucket) => bucket.fileBytesMax))
  return Math.min(
    Math.max(largest * listenerBodyFactor, listenerBodyBytesMin) + formOverheadBytesMax,
    fileBytesMax + formOverheadBytesMax,
  )
}

/** Warns where a reloaded configuration allows files that the listener, which keeps its bound, would still refuse. */
export function warnOfBodyBound(buckets: Buckets, listenerBytes: number, log: Log): void {
  for (const { name, fileBytesMax } of buckets.values())
    if (fileBytesMax + formOverheadBytesMax > listenerBytes)
      log.warn('http.body_limit_needs_restart', { bucket: name, fileBytesMax, listenerBytes })
}
