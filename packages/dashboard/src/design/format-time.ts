/** Times and devices as text. */

const units: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['year', 365 * 24 * 60 * 60_000],
  ['month', 30 * 24 * 60 * 60_000],
  ['day', 24 * 60 * 60_000],
  ['hour', 60 * 60_000],
  ['minute', 60_000],
]

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })

/** A time relative to now, such as `3 days ago`. */
export function formatAge(iso: string): string {
  const differenceMs = Date.parse(iso) - Date.now()
  for (const [unit, ms] of units)
    if (Math.abs(differenceMs) >= ms) return relative.format(Math.round(differenceMs / ms), unit)
  return 'just now'
}

export const formatTime = (iso: string): string => new Date(iso).toLocaleString('en')

const browsers = [
  [/\bEdg\//, 'Edge'],
  [/\bFirefox\//, 'Firefox'],
  [/\bChrome\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
] as const
const systems = [
  [/\biPhone\b|\biPad\b/, 'iOS'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bLinux\b/, 'Linux'],
] as const

const match = (text: string, patterns: readonly (readonly [RegExp, string])[]): string | undefined =>
  patterns.find(([pattern]) => pattern.test(text))?.[1]

/** The browser and system of a user agent; the beginning of one that is unknown. */
export function formatDevice(userAgent: string | null): string {
  if (userAgent === null) return 'Unknown device'
  const known = [match(userAgent, browsers), match(userAgent, systems)].filter(Boolean)
  return known.length > 0 ? known.join(' on ') : userAgent.slice(0, 40)
}
