/** A cluster of one node: a few bounded maps. Nothing survives the process, and nothing needs to. */
import { type Clock, systemClock } from '../../base/clock.ts'
import { type Log, silentLog } from '../../base/log.ts'
import { rateLimitKeysMax } from '../../limits/api.ts'
import { leasesMax } from '../../limits/redis.ts'
import { EngineError } from '../sql/error.ts'
import { createChannels } from './channels.ts'
import type { Cluster, Counters, Hit, Leases } from './cluster.ts'

export interface MemoryClusterOptions {
  readonly clock?: Clock
  readonly log?: Log
  /** Maximum number of counted keys. */
  readonly keysMax?: number
  /** Maximum number of leases. */
  readonly leasesMax?: number
}

export function createMemoryCluster(options: MemoryClusterOptions = {}): Cluster {
  const { clock = systemClock, log = silentLog } = options
  const channels = createChannels(log)
  return {
    ...createCounters(clock, options.keysMax ?? rateLimitKeysMax),
    ...createLeases(clock, options.leasesMax ?? leasesMax),
    publish(channel, message) {
      // In a microtask, as if it had traveled: a publisher never runs its listeners.
      if (channels.has(channel)) queueMicrotask(() => channels.deliver(channel, message))
    },
    subscribe: (channel, listener) => channels.add(channel, listener),
    isHealthy: () => true,
    findFault: () => null,
    async close() {
      channels.clear()
    },
  }
}

interface Ending {
  endMs: number
}

/**
 * Removes up to two expired entries from the front, where the oldest are: each insertion pays for two removals, so a
 * map shrinks without a sweep.
 */
function forgetEnded(entries: Map<string, Ending>, nowMs: number): void {
  let removed = 0
  for (const [key, { endMs }] of entries) {
    if (endMs > nowMs || removed++ === 2) return
    entries.delete(key)
  }
}

/** Beyond `keysMax` keys the oldest window is evicted, so a flood of addresses costs bounded memory. */
function createCounters(clock: Clock, keysMax: number): Counters {
  // In order of start: a restarted window moves to the back.
  const windows = new Map<string, Ending & { count: number }>()

  function makeRoom(nowMs: number): void {
    forgetEnded(windows, nowMs)
    if (windows.size < keysMax) return
    for (const key of windows.keys()) return void windows.delete(key)
  }

  return {
    hit(key, windowMs, by = 1): Hit {
      const nowMs = clock.now()
      const window = windows.get(key)
      if (window && nowMs < window.endMs) {
        // The clock was set back, or the window shortened: no caller is locked out for longer than a window.
        window.endMs = Math.min(window.endMs, nowMs + windowMs)
        window.count += by
        return { count: window.count, resetMs: window.endMs - nowMs }
      }
      if (window) windows.delete(key)
      makeRoom(nowMs)
      windows.set(key, { count: by, endMs: nowMs + windowMs })
      return { count: by, resetMs: windowMs }
    },
  }
}

interface LiveLease extends Ending {
  readonly holder: string
  readonly fence: number
  readonly ttlMs: number
}

/** A live lease is never evicted; beyond the bound no new one is granted. */
function createLeases(clock: Clock, most: number): Leases {
  // In order of the last renewal.
  const leases = new Map<string, LiveLease>()
  let lastFence = 0

  function find(name: string): LiveLease | null {
    const lease = leases.get(name)
    if (!lease) return null
    const nowMs = clock.now()
    // The clock was set back: no lease outlives its requested time.
    lease.endMs = Math.min(lease.endMs, nowMs + lease.ttlMs)
    return nowMs < lease.endMs ? lease : null
  }

  function store(name: string, holder: string, fence: number, ttlMs: number): void {
    leases.delete(name)
    leases.set(name, { holder, fence, ttlMs, endMs: clock.now() + ttlMs })
  }

  return {
    async acquire(name, holder, ttlMs) {
      const lease = find(name)
      if (lease && lease.holder !== holder) return null
      if (!lease) {
        forgetEnded(leases, clock.now())
        if (leases.size >= most && !leases.has(name)) throw new EngineError('busy', 'Too many leases are held')
        // Microseconds since the epoch, so that fences increase across restarts too: what they protect may be
        // persistent.
        lastFence = Math.max(lastFence + 1, clock.now() * 1000)
      }
      const fence = lease?.fence ?? lastFence
      store(name, holder, fence, ttlMs)
      return { fence }
    },
    async renew(name, holder, ttlMs) {
      const lease = find(name)
      if (lease?.holder !== holder) return false
      store(name, holder, lease.fence, ttlMs)
      return true
    },
    async release(name, holder) {
      if (find(name)?.holder === holder) leases.delete(name)
    },
  }
}
