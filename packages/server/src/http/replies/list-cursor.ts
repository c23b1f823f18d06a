/**
 * Cursors of lists that are in order of one key: the key of the last item and what list it belongs to, sealed, so that
 * nobody can make one up or use it for another list. Cursors of records, which may be sorted by anything, are in
 * `query`.
 */
import { createSeal, equalsSecret } from '../../base/crypto/hash.ts'
import { invalidField } from '../../errors.ts'
import { cursorCharsMax } from '../../limits/api.ts'

export interface ListCursors {
  /** `list` is whatever tells this list from others: its owner, its prefix. */
  format(list: readonly string[], lastKey: string): string
  /** The key after which to go on. Throws 400 for a text that is no cursor of this list. */
  parse(list: readonly string[], text: string): string
}

/** `purpose` keeps the cursors of one feature from being taken for another's. */
export function createListCursors(secret: string, purpose: string): ListCursors {
  const seal = createSeal(secret, purpose)
  return {
    format(list, lastKey) {
      const content = JSON.stringify([...list, lastKey])
      return `${Buffer.from(content).toString('base64url')}.${seal(content)}`
    },

    parse(list, text) {
      const [encoded = '', given = ''] = text.length > cursorCharsMax ? [] : text.split('.')
      const content = Buffer.from(encoded, 'base64url').toString()
      if (encoded === '' || !equalsSecret(given, seal(content)))
        throw invalidField('cursor', 'type', 'is not a cursor of this list')
      const parts = JSON.parse(content) as string[]
      const lastKey = parts.pop()
      if (lastKey === undefined || parts.length !== list.length || parts.some((part, at) => part !== list[at]))
        throw invalidField('cursor', 'type', 'belongs to another list')
      return lastKey
    },
  }
}
