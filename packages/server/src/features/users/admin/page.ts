/** The list of users, page by page: its limit, its cursor, and nothing of what is on a page. */
import { invalidField } from '../../../errors.ts'
import { userListLimitDefault, userListLimitMax } from '../../../limits/users.ts'
import { isUserId } from './input.ts'

/** A place in the list, newest first: just behind the user with this time and id. */
export interface Place {
  readonly createdAtMs: number
  readonly id: string
}

/** SPEC "Admin users": the cursor of the first page. */
const startCursor = '0'

const wholeNumberPattern = /^-?\d{1,16}$/

/** Users per page; more than the most is clamped. Throws 400. */
export function parseLimit(text: string | undefined): number {
  if (text === undefined) return userListLimitDefault
  if (!wholeNumberPattern.test(text)) throw invalidField('limit', 'type', 'must be a whole number')
  const limit = Number(text)
  if (limit < 1) throw invalidField('limit', 'min', 'must be at least 1')
  return Math.min(limit, userListLimitMax)
}

/** A text to come back with. It holds a place and no number, so that users who come and go move nothing. */
export const formatCursor = ({ createdAtMs, id }: Place): string =>
  Buffer.from(JSON.stringify([createdAtMs, id])).toString('base64url')

/** Null for the start. Throws 400 for what `formatCursor` has not made. */
export function parseCursor(text: string | undefined): Place | null {
  if (text === undefined || text === startCursor) return null
  const [createdAtMs, id, ...rest] = readArray(text)
  if (!Number.isSafeInteger(createdAtMs) || typeof id !== 'string' || !isUserId(id) || rest.length > 0)
    throw notACursor()
  const place = { createdAtMs: createdAtMs as number, id }
  if (formatCursor(place) !== text) throw notACursor()
  return place
}

function readArray(text: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    return Array.isArray(value) ? value : []
  } catch {
    return []
  }
}

const notACursor = () => invalidField('cursor', 'type', 'is not a cursor of this list')
