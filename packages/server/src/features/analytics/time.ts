/** Time in analytics: minutes since 1970, days as text, ranges of reports, and event ids, which sort by time. */
const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs

/** Length in minutes of each grouping unit. */
export const unitMinutes = { minute: 1, hour: 60, day: 24 * 60 } as const
export type Unit = keyof typeof unitMinutes
export const units = Object.keys(unitMinutes) as readonly Unit[]

export const ranges = ['1h', '6h', '24h', '7d', '30d', '90d'] as const
export type Range = (typeof ranges)[number]

const rangeMs: Readonly<Record<Range, number>> = {
  '1h': 60 * minuteMs,
  '6h': 6 * 60 * minuteMs,
  '24h': dayMs,
  '7d': 7 * dayMs,
  '30d': 30 * dayMs,
  '90d': 90 * dayMs,
}

export const minuteOf = (ms: number): number => Math.floor(ms / minuteMs)
export const msOfMinute = (minute: number): number => minute * minuteMs

/** The first minute of a range that ends now. */
export const rangeStart = (range: Range, nowMs: number): number => minuteOf(nowMs - rangeMs[range])

/** `2026-01-31`, in UTC. */
export const dayOf = (minute: number): string => new Date(msOfMinute(minute)).toISOString().slice(0, 10)
/** The first minute of the day that contains an instant. */
export const dayStart = (ms: number): number => minuteOf(Math.floor(ms / dayMs) * dayMs)
/** The first start of a day at or after a minute. */
export const nextDayStart = (minute: number): number => Math.ceil(minute / unitMinutes.day) * unitMinutes.day

/** 48 bits of time as the head of a UUID; `sequence` is the 12 bits after the version. */
function idHead(ms: number, sequence: number): string {
  const time = ms.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${sequence.toString(16).padStart(3, '0')}`
}

/**
 * The id of an event or a request: a UUID v7 of its time and of its sequence number within the batch (below 4096), so
 * that ids of one millisecond keep their order. The rest is random.
 */
export const createEventId = (ms: number, sequence: number): string =>
  idHead(ms, sequence) + crypto.randomUUID().slice(18)

/** A lower bound of the ids from an instant on; greater than all earlier ids. */
export const idBound = (ms: number): string => idHead(ms, 0)

/** The time of an event, in milliseconds since 1970. */
export const msOfId = (id: string): number => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
