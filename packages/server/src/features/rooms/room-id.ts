/** Validation of room ids. They occur in URLs, in keys of databases and in topics, without any syntax of their own. */
import { isStorableText } from '../../base/text/text.ts'
import { roomIdCharsMax } from '../../limits/rooms.ts'

/** Whether a text is 1 to 128 characters without control characters. */
export const isRoomId = (text: string): boolean =>
  text.length > 0 && text.length <= roomIdCharsMax && isStorableText(text) && !/\p{Cc}/u.test(text)
