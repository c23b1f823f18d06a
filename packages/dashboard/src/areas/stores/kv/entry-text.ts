/** What is typed into the form of an entry. */

/** Whether no integer of a value is so large that the page has rounded it. */
export function isExact(value: unknown): boolean {
  if (typeof value === 'number') return !Number.isInteger(value) || Number.isSafeInteger(value)
  if (typeof value === 'object' && value !== null) return Object.values(value).every(isExact)
  return true
}

const lifetimeMin = 60
/** Ten years. */
const lifetimeMax = 315_360_000

/** Seconds; null for no end, undefined for text that is no lifetime. */
export function parseLifetime(text: string): number | null | undefined {
  if (text.trim() === '') return null
  const seconds = Number(text)
  return Number.isInteger(seconds) && seconds >= lifetimeMin && seconds <= lifetimeMax ? seconds : undefined
}

/** The rest of a lifetime as text, so that an entry that is saved again still expires. */
export const secondsUntil = (expiresAt: string | null): string =>
  expiresAt === null ? '' : String(Math.max(lifetimeMin, Math.round((Date.parse(expiresAt) - Date.now()) / 1000)))
