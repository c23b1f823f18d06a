/**
 * Offsets of time zones from UTC, from the runtime's time zone database. Local time is computed from them in the same
 * way on every engine: engines have databases of their own, of other versions, or none.
 */
import { createLru } from '../concurrency/lru.ts'

/** A period with one offset; it ends where the next begins. */
export interface OffsetPeriod {
  /** The first instant, as UTC text with milliseconds. */
  readonly from: string
  readonly seconds: number
}

/** The years with local time, 1900 to 2199: some 500 periods in a zone with daylight saving time. */
export const zonedFrom = '1900-01-01T00:00:00.000Z'
export const zonedUntil = '2200-01-01T00:00:00.000Z'

/** Zones kept; computing one takes up to ten milliseconds, and there are some 400. */
const zonesMax = 128
const zones = createLru<string, readonly OffsetPeriod[]>(zonesMax)

/** A name, such as `Europe/Berlin`, or an offset. Other texts that the runtime accepts are not time zones. */
const zonePattern = /^(?:[A-Za-z][A-Za-z0-9_+/-]{0,63}|[+-]\d{2}:\d{2})$/

const secondsOf = ({ offsetNanoseconds }: { readonly offsetNanoseconds: number }): number => offsetNanoseconds / 1e9

function startIn(timeZone: string): Temporal.ZonedDateTime | null {
  if (!zonePattern.test(timeZone)) return null
  try {
    return Temporal.Instant.from(zonedFrom).toZonedDateTimeISO(timeZone)
  } catch {
    return null
  }
}

function periodsFrom(start: Temporal.ZonedDateTime): readonly OffsetPeriod[] {
  const endMs = Date.parse(zonedUntil)
  const periods: OffsetPeriod[] = [{ from: zonedFrom, seconds: secondsOf(start) }]
  for (let at = start.getTimeZoneTransition('next'); at; at = at.getTimeZoneTransition('next')) {
    if (at.epochMilliseconds >= endMs) break
    const seconds = secondsOf(at)
    if (seconds === periods.at(-1)?.seconds) continue
    periods.push({ from: new Date(at.epochMilliseconds).toISOString(), seconds })
  }
  return periods
}

/** The periods of a zone from `zonedFrom` on, at least one, in order; null if there is no such zone. */
export function findOffsetPeriods(timeZone: string): readonly OffsetPeriod[] | null {
  const start = startIn(timeZone)
  if (!start) return null
  // The runtime writes the name in one way, whatever its case was.
  const name = start.timeZoneId
  const known = zones.get(name)
  if (known) return known
  const periods = periodsFrom(start)
  zones.set(name, periods)
  return periods
}
