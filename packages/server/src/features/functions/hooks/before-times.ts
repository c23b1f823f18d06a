/** How long hooks delay writes, by table: for the metric, and for a warning where they are slow. */
import type { Clock } from '../../../base/clock.ts'
import type { Log } from '../../../base/log.ts'
import { createDurations, type Durations } from '../../../http/durations.ts'
import { beforeSamples, beforeSlowSeconds, beforeWarningMs } from '../../../limits/functions.ts'

export interface BeforeTimes {
  /** Of the calls, by table. */
  readonly durations: ReadonlyMap<string, Durations>
  record(table: string, seconds: number): void
}

interface Recent {
  /** The last ones, in no order. */
  readonly seconds: number[]
  next: number
  warnedAtMs: number
}

/** Upper bounds in seconds, from an immediate answer to the longest deadline. */
const beforeBounds = [0.000_05, 0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 2.5] as const

const medianOf = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0

export function createBeforeTimes(clock: Clock, log: Log): BeforeTimes {
  const durations = new Map<string, Durations>()
  const recent = new Map<string, Recent>()
  return {
    durations,
    record(table, seconds) {
      durations.getOrInsertComputed(table, () => createDurations(beforeBounds)).record(seconds)
      const one = recent.get(table) ?? { seconds: [], next: 0, warnedAtMs: Number.NEGATIVE_INFINITY }
      recent.set(table, one)
      one.seconds[one.next] = seconds
      one.next = (one.next + 1) % beforeSamples
      if (one.next !== 0 || clock.now() - one.warnedAtMs < beforeWarningMs) return
      const median = medianOf(one.seconds)
      if (median <= beforeSlowSeconds) return
      one.warnedAtMs = clock.now()
      log.warn('functions.before_slow', { table, medianMs: Number((median * 1000).toFixed(3)) })
    },
  }
}
