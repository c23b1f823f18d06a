/**
 * Cursors of lists with a fixed order: the position of the last item with a MAC over position and list, so that clients
 * can neither forge a cursor nor use it for another list. Cursors of records, which have any sort order, are in
 * `query`.
 */
import { createMac, equalsSecret } from '../../base/crypto/hash.ts'
import { invalidField } from '../../errors.ts'
import { cursorCharsMax } from '../../limits/api.ts'

/** The values that order the items of a list. */
export type ListPosition = readonly (string | number)[]

export interface ListCursors<Position extends ListPosition> {
  /** `list` identifies the list: its owner, its prefix, its filter. */
  format(list: readonly (string | null)[], last: Position): string
  /** The position of the last item of the previous page. Throws 400 for a text that is not a cursor of this list. */
  parse(list: readonly (string | null)[], text: string): Position
}

/** `purpose` separates the cursors of one kind of list from all others. */
export function createListCursors<Position extends ListPosition>(
  secret: string,
  purpose: string,
): ListCursors<Position> {
  const mac = createMac(secret, purpose)
  const macOf = (list: readonly (string | null)[], content: string): string => mac(JSON.stringify([list, content]))
  return {
    format(list, last) {
      const content = Buffer.from(JSON.stringify(last)).toString('base64url')
      return `${content}.${macOf(list, content)}`
    },
    parse(list, text) {
      const [content = '', given = '', ...rest] = text.length > cursorCharsMax ? [] : text.split('.')
      if (rest.length > 0 || !equalsSecret(given, macOf(list, content)))
        throw invalidField('cursor', 'type', 'is not a cursor of this list')
      return JSON.parse(Buffer.from(content, 'base64url').toString())
    },
  }
}
