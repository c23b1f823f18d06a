/** Schemas that several endpoints of rooms share. */
import { z } from '../../../base/schemas/z.ts'
import { isStorableText } from '../../../base/text/text.ts'
import { roomIdCharsMax } from '../../../limits/rooms.ts'
import { isRoomId } from '../room-id.ts'

export const tag = 'Rooms'

/** Scopes name no namespace: it is in a query or a body, which scopes do not cover. */
export const readScope = (): string => 'rooms:namespace:*:read'
export const writeScope = (): string => 'rooms:namespace:*:write'

/** More than administering rooms: to act in the name of players. */
export const actScope = (): string => 'rooms:namespace:*:act'

export const roomIdSchema = z.string().refine(isRoomId, `must be 1 to ${roomIdCharsMax} printable characters`)
export const namespaceSchema = z.string().refine(isStorableText, 'must be text without NUL')
/** The query or body that names a room. */
export const roomSchema = z.object({ namespace: namespaceSchema, id: roomIdSchema })

export const metadataSchema = z.record(z.string(), z.unknown())
export const occupancySchema = z.object({ activeMembers: z.number(), activeConnections: z.number() })
