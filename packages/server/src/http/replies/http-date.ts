/** Dates in HTTP headers (RFC 9110 §5.6.7): the current format and the two obsolete ones that must be accepted. */

const weekdays = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']
const weekdaysInFull = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

const time = '(?<time>\\d{2}:\\d{2}:\\d{2})'
const forms = [
  // Sun, 06 Nov 1994 08:49:37 GMT
  new RegExp(`^(?<weekday>\\w{3}), (?<day>\\d{2}) (?<month>\\w{3}) (?<year>\\d{4}) ${time} GMT$`),
  // Sunday, 06-Nov-94 08:49:37 GMT
  new RegExp(`^(?<weekday>\\w{6,9}), (?<day>\\d{2})-(?<month>\\w{3})-(?<year>\\d{2}) ${time} GMT$`),
  // Sun Nov  6 08:49:37 1994
  new RegExp(`^(?<weekday>\\w{3}) (?<month>\\w{3}) (?<day>[ \\d]\\d) ${time} (?<year>\\d{4})$`),
]

/** Expands a year of two digits; the format has been obsolete since 1997. */
const centuryOf = (year: number): number => (year < 70 ? 2000 : 1900)

/** Milliseconds since 1970, or null if malformed: another zone, a day that does not exist, a wrong day of the week. */
export function parseHttpDate(text: string): number | null {
  const parts = forms.map((form) => form.exec(text)?.groups).find((groups) => groups !== undefined)
  if (!parts) return null
  const { weekday = '', day = '', month = '', year = '', time: clock = '' } = parts
  const [hours = 0, minutes = 0, seconds = 0] = clock.split(':').map(Number)
  const fullYear = Number(year) + (year.length === 2 ? centuryOf(Number(year)) : 0)
  const date = new Date(0)
  date.setUTCFullYear(fullYear, months.indexOf(month), Number(day))
  if (!months.includes(month) || date.getUTCDate() !== Number(day)) return null
  const names = weekday.length === 3 ? weekdays : weekdaysInFull
  if (names[date.getUTCDay()] !== weekday || hours > 23 || minutes > 59 || seconds > 59) return null
  return date.setUTCHours(hours, minutes, seconds)
}
