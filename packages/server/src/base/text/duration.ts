/** Parses durations such as `30s`, `5m`, `1h` and `7d`, in requests and in the configuration. */

const unitMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Eight digits: three years in seconds, and a day count that is still an exact number of milliseconds. */
const durationPattern = /^([0-9]{1,8})([smhd])$/

/**
 * Milliseconds of a duration such as `30m`; whole and at least one unit. Throws a RangeError whose message completes a
 * sentence about the value ("expiresIn must be …"). Linear in the input: anything long fails at the first digits.
 */
export function parseDuration(text: string): number {
  const match = durationPattern.exec(text)
  const count = Number(match?.[1])
  const unit = unitMs[match?.[2] ?? '']
  if (!unit || !(count > 0)) throw new RangeError('must be a duration such as "30s", "15m", "12h" or "7d"')
  return count * unit
}
