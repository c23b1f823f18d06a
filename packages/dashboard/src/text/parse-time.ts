/** Times as people type them. */

const isoDay = /^(\d{4})-(\d{2})-(\d{2})(?=$|[T ])/

/**
 * Accepts what the server accepts, and times without a zone in that of the browser. Null for what is no time; a day
 * that its month does not have is none, which browsers take for one of the next month.
 */
export function parseTimeText(text: string): Date | null {
  const written = text.trim()
  const [, year, month, day] = isoDay.exec(written) ?? []
  if (
    day !== undefined &&
    new Date(Date.UTC(Number(year), Number(month) - 1, Number(day))).getUTCDate() !== Number(day)
  )
    return null
  const time = new Date(/^\d{4}-\d{2}-\d{2} \d/.test(written) ? written.replace(' ', 'T') : written)
  return Number.isNaN(time.getTime()) ? null : time
}
