/** What the parsers of rows and files that hooks return have in common. */
import type { ApiError } from '../errors.ts'

/** Whether a hook has left a member as it was: a missing one counts as null. */
export const isSameValue = (one: unknown, other: unknown): boolean =>
  one === other || JSON.stringify(one ?? null) === JSON.stringify(other ?? null)

/** Names the fields of an error, not only the first as its message does. */
export const problemOf = ({ message, data }: ApiError): string =>
  data
    ? Object.entries(data)
        .map(([name, { message: problem }]) => `${name}: ${problem}`)
        .join('; ')
    : message
