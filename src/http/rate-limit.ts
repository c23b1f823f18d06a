/** Rate limits per client address and group of endpoints. Who is exempt is decided in `handle`. */
import { countedAddress } from '../base/address.ts'
import type { Counters, Hit } from '../engines/cluster.ts'
import { rateLimited } from '../errors.ts'
import type { RateLimitGroup } from './endpoint.ts'

export interface RateLimit {
  readonly requests: number
  readonly windowMs: number
}

export type RateLimits = Readonly<Record<RateLimitGroup, RateLimit>>

export interface RateLimiter {
  /**
   * Counts one request of a client against a group; throws (or rejects with) 429 with `Retry-After` when that is one
   * too many. Returns a promise only where the counters do.
   */
  count(group: RateLimitGroup, address: string): void | Promise<void>
}

/** IPv4 addresses count one by one, IPv6 addresses by /64. */
export function createRateLimiter(counters: Counters, limits: RateLimits): RateLimiter {
  return {
    count(group, address) {
      const { requests, windowMs } = limits[group]
      const hit = counters.hit(`${group}:${countedAddress(address)}`, windowMs)
      if (hit instanceof Promise) return hit.then((later) => judge(later, requests))
      judge(hit, requests)
    },
  }
}

function judge({ count, resetMs }: Hit, requests: number): void {
  if (count > requests) throw rateLimited(resetMs / 1000)
}
