/** Selects the events of a report: the filter of a request, and its condition in SQL. */
import { codePointLength, isStorableText } from '../../base/text/text.ts'
import { type SqlText, sql } from '../../engines/sql/sql-text.ts'
import { invalidField } from '../../errors.ts'
import { eventNameCharsMax, eventUserIdCharsMax } from '../../limits/analytics.ts'
import { idBound, msOfMinute, type Range } from './time.ts'

export interface EventFilter {
  readonly event: string | null
  readonly userId: string | null
  readonly range: Range
}

interface FilterQuery {
  readonly event?: string | undefined
  readonly userId?: string | undefined
  readonly range: Range
}

/** Throws 400 for an invalid event name or user id. */
export const parseEventFilter = ({ event, userId, range }: FilterQuery): EventFilter => ({
  event: parseText('event', event, eventNameCharsMax),
  userId: parseText('userId', userId, eventUserIdCharsMax),
  range,
})

function parseText(name: string, text: string | undefined, charsMax: number): string | null {
  if (text === undefined) return null
  if (text === '' || codePointLength(text) > charsMax || !isStorableText(text))
    throw invalidField(name, 'pattern', `must be 1 to ${charsMax} characters`)
  return text
}

/**
 * Condition for the events of a filter from a minute on. With a user, that user's index must be used even if the name
 * is rare: the expression in place of the column hides the other index from the planner.
 */
export function matching({ event, userId }: EventFilter, start: number): SqlText {
  const name = event === null ? sql`` : userId === null ? sql` AND name = ${event}` : sql` AND name || '' = ${event}`
  const user = userId === null ? sql`` : sql` AND user_id = ${userId}`
  return sql`id >= ${idBound(msOfMinute(start))}${name}${user}`
}
