/** Durations in whole days, as advice names them. */

export const dayMs = 24 * 60 * 60 * 1000

export function formatDays(ms: number): string {
  const days = Math.floor(ms / dayMs)
  return days === 1 ? 'day' : `${days} days`
}

/** From now on. */
export const inDays = (ms: number): string => (ms < dayMs ? 'within a day' : `in ${Math.floor(ms / dayMs)} days`)
