/** Rate limits per client address and group of endpoints, and the service keys that are exempt. */
import { type Caller, callerKey } from '../../access/caller.ts'
import { permitsArea, permitsScope } from '../../access/service-keys.ts'
import { sha256 } from '../../base/crypto/hash.ts'
import { countedAddress } from '../../base/network/address.ts'
import type { Counters, Hit } from '../../engines/cluster/cluster.ts'
import { rateLimited } from '../../errors.ts'
import type { RateLimitGroup } from '../endpoint.ts'

export interface RateLimit {
  readonly requests: number
  readonly windowMs: number
}

export type RateLimits = Readonly<Record<RateLimitGroup, RateLimit>>

export interface RateLimiter {
  /**
   * Counts one request of a client against a group. Throws (or rejects with) 429 with `Retry-After` beyond the limit.
   * Returns a promise only if the counters do. `factor` multiplies the limit, for keys that several clients share.
   */
  count(group: RateLimitGroup, address: string, factor?: number): void | Promise<void>
}

/** IPv4 addresses are counted individually, IPv6 addresses by /64. `limits` are those in force. */
export function createRateLimiter(counters: Counters, limits: () => RateLimits): RateLimiter {
  return {
    count(group, address, factor = 1) {
      const { requests, windowMs } = limits()[group]
      const limit = requests * factor
      const hit = counters.hit(`${group}:${countedAddress(address)}`, windowMs, 1, limit)
      if (hit instanceof Promise) return hit.then((later) => judge(later, limit))
      judge(hit, limit)
    },
  }
}

/** Areas of scopes (`access/service-keys`) whose keys are exempt from a group; null where any key is. */
const exemptAreas: Readonly<Record<RateLimitGroup, string | null>> = {
  db: 'db',
  instances: 'db',
  storage: 'storage',
  auth: 'auth',
  signin: 'auth',
  signup: 'auth',
  mail: 'auth',
  push: 'push',
  events: 'analytics',
  functions: 'functions',
  global: null,
}

/**
 * Whether a caller is exempt from a group: a service key whose scopes cover what the endpoint requires or, if it
 * requires none, the group's area. A key for one bucket must not lift the limit on guessing passwords.
 */
export function isExempt(caller: Caller, group: RateLimitGroup, needed: readonly string[] = []): boolean {
  if (caller.kind !== 'service') return false
  if (needed.length > 0) return needed.some((scope) => permitsScope(caller.scopes, scope))
  const area = exemptAreas[group]
  return area === null || permitsArea(caller.scopes, area)
}

/** Counts the creation of a database instance; throws as `RateLimiter.count` does. */
export const countInstance = (limiter: RateLimiter, caller: Caller): void | Promise<void> =>
  isExempt(caller, 'instances') ? undefined : limiter.count('instances', sha256(callerKey(caller)))

function judge({ count, resetMs }: Hit, requests: number): void {
  if (count > requests) throw rateLimited(resetMs / 1000)
}
