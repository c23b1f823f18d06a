/**
 * Timestamps: ISO 8601 in, UTC milliseconds text out (`2026-01-31T12:00:00.000Z`), so that text order is time order.
 */

const isoPattern =
  /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?(Z|z|[+-]\d{2}(?::?\d{2})?)?)?$/

/** The latest instant with a four-digit year. */
export const datetimeMaxMs = Date.UTC(9999, 11, 31, 23, 59, 59, 999)
/** The earliest instant with a four-digit year and no sign. */
export const datetimeMinMs = -62_167_219_200_000

/** Formats an instant within the years 0000 to 9999. */
export const formatDatetime = (ms: number): string => new Date(ms).toISOString()

/**
 * Normalizes a date or timestamp with any offset to UTC text with milliseconds; null if malformed. A date alone
 * is its midnight in UTC; a time without offset is taken as UTC; digits beyond milliseconds are cut.
 */
export function findDatetime(text: string): string | null {
  if (text.length > 40) return null
  const match = isoPattern.exec(text)
  if (!match) return null
  const [, year, month, day, hour = '00', minute = '00', second = '00', fraction = '', offset = 'Z'] = match
  const fields = [year, month, day, hour, minute, second].map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  if (fields[3] > 23 || fields[4] > 59 || fields[5] > 59) return null
  const date = new Date(0)
  date.setUTCFullYear(fields[0], fields[1] - 1, fields[2])
  // 31 April rolls over to May: such a date is refused rather than moved.
  if (date.getUTCMonth() !== fields[1] - 1 || date.getUTCDate() !== fields[2]) return null
  date.setUTCHours(fields[3], fields[4], fields[5], Number(fraction.slice(0, 3).padEnd(3, '0')))
  const offsetMinutes = findOffsetMinutes(offset)
  if (offsetMinutes === null) return null
  const ms = date.getTime() - offsetMinutes * 60_000
  return ms < datetimeMinMs || ms > datetimeMaxMs ? null : formatDatetime(ms)
}

function findOffsetMinutes(offset: string): number | null {
  if (offset === 'Z' || offset === 'z') return 0
  const hours = Number(offset.slice(1, 3))
  const minutes = Number(offset.slice(3).replace(':', '') || '0')
  if (hours > 23 || minutes > 59) return null
  return (offset[0] === '-' ? -1 : 1) * (hours * 60 + minutes)
}
