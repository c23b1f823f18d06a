/**
 * Which requests are traced. All of them in development mode and while an administrator watches the list; otherwise the
 * first few after a slow or a failed one of the same endpoint, and one of each `traceSampleEvery`.
 */
import type { Clock } from '../../../base/clock.ts'
import { RequestTrace } from '../../../base/tracing/request-trace.ts'
import {
  traceEndpointsMax,
  traceFollowedMax,
  traceSampleEvery,
  traceSlowMs,
  traceWatchMs,
} from '../../../limits/dashboard.ts'

export interface Sampler {
  begin(endpoint: string): RequestTrace | null
  /** Follows an endpoint whose response was slow or failed by a fault of the server. */
  ended(endpoint: string, status: number, ms: number): void
  /** An administrator watches the list. */
  watch(): void
}

export function createSampler(clock: Clock, isDevelopment: () => boolean): Sampler {
  /** How many more requests of each endpoint are traced. */
  const followed = new Map<string, number>()
  let watchedUntilMs = Number.NEGATIVE_INFINITY
  let count = 0

  function isFollowed(endpoint: string): boolean {
    const left = followed.get(endpoint)
    if (left === undefined) return false
    if (left > 1) followed.set(endpoint, left - 1)
    else followed.delete(endpoint)
    return true
  }

  return {
    begin(endpoint) {
      count = (count + 1) % traceSampleEvery
      const isSampled =
        count === 0 ||
        (followed.size > 0 && isFollowed(endpoint)) ||
        isDevelopment() ||
        (watchedUntilMs > 0 && clock.now() < watchedUntilMs)
      return isSampled ? new RequestTrace() : null
    },
    ended(endpoint, status, ms) {
      if (status < 500 && ms < traceSlowMs) return
      if (followed.size < traceEndpointsMax || followed.has(endpoint)) followed.set(endpoint, traceFollowedMax)
    },
    watch() {
      watchedUntilMs = clock.now() + traceWatchMs
    },
  }
}
