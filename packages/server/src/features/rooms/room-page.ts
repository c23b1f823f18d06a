/** A page of the list of rooms: how many, and after which. The cursor names the last room of the page before. */
import { invalidField } from '../../errors.ts'
import { roomListLimit, roomListLimitMax } from '../../limits/rooms.ts'
import type { RoomKey } from './engine/ports.ts'

export interface RoomPage {
  /** At most `roomListLimitMax`. */
  readonly limit: number
  /** The name of the room before the first; null for the first page. */
  readonly after: string | null
}

/** What the list is in order of. A namespace has no slash in it. */
export const listNameOf = ({ namespace, id }: RoomKey): string => `${namespace}/${id}`

/** The user after whom a page of players begins; null for the first. Throws 400 for what no page has given. */
export function parsePlayerCursor(cursor: string | undefined): string | null {
  if (cursor === undefined) return null
  const userId = Buffer.from(cursor, 'base64url').toString()
  if (userId === '' || playerCursor(userId) !== cursor)
    throw invalidField('cursor', 'pattern', 'must be the cursor of the page before')
  return userId
}

export const playerCursor = (userId: string): string => Buffer.from(userId).toString('base64url')

/** Throws 400 for a limit that is no whole number from 1, and for a cursor that no page has given. */
export function parseRoomPage(query: { limit?: string | undefined; cursor?: string | undefined }): RoomPage {
  const { limit = String(roomListLimit), cursor } = query
  if (!/^[1-9]\d{0,8}$/.test(limit)) throw invalidField('limit', 'type', 'must be a whole number from 1')
  return { limit: Math.min(Number(limit), roomListLimitMax), after: cursor === undefined ? null : parseCursor(cursor) }
}

function parseCursor(cursor: string): string {
  const name = Buffer.from(cursor, 'base64url').toString()
  if (!name.includes('/') || formatCursor(name) !== cursor)
    throw invalidField('cursor', 'pattern', 'must be the cursor of the page before')
  return name
}

/** The cursor of a page that ends with a room. */
export const cursorAfter = (key: RoomKey): string => formatCursor(listNameOf(key))

const formatCursor = (name: string): string => Buffer.from(name).toString('base64url')

/** The first rooms of a page, in order; one more than the limit where there are more. */
export function takePage<Room extends { readonly key: RoomKey }>(rooms: readonly Room[], page: RoomPage): Room[] {
  const named = rooms.map((room) => [listNameOf(room.key), room] as const)
  const following = page.after === null ? named : named.filter(([name]) => name > (page.after as string))
  const sorted = following.sort(([one], [other]) => (one < other ? -1 : 1))
  return sorted.slice(0, page.limit + 1).map(([, room]) => room)
}

/** Cuts what `takePage` gave to the page; the cursor is null where it is the last. */
export function cutPage<Room extends { readonly key: RoomKey }>(
  taken: readonly Room[],
  { limit }: RoomPage,
): { rooms: readonly Room[]; cursor: string | null } {
  const rooms = taken.slice(0, limit)
  const last = rooms.at(-1)
  return { rooms, cursor: taken.length > limit && last ? formatCursor(listNameOf(last.key)) : null }
}
