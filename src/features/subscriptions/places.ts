/**
 * Places of a change log as clients carry them: sealed, so that a place is only ever one the server gave, and bound to
 * the log they are places of.
 */
import { createSeal, equalsSecret } from '../../base/hash.ts'
import { placeCharsMax } from '../../limits.ts'
import type { Place } from './feed.ts'

export interface Places {
  /** `log` tells the logs apart. */
  format(log: string, place: Place): string
  /** Null for a text that is none of ours, or one of another log. */
  find(log: string, text: string): Place | null
}

export function createPlaces(secret: string): Places {
  const seal = createSeal(secret, 'change-place')
  return {
    format(log, { from, to, seq, atMs }) {
      const content = Buffer.from(JSON.stringify([from, from === to ? 0 : to, seq, atMs])).toString('base64url')
      return `${content}.${seal(`${log}\n${content}`)}`
    },
    find(log, text) {
      if (text.length > placeCharsMax) return null
      const [content = '', sealed = '', ...rest] = text.split('.')
      if (rest.length > 0 || !equalsSecret(sealed, seal(`${log}\n${content}`))) return null
      const [from, to, seq, atMs] = JSON.parse(Buffer.from(content, 'base64url').toString()) as [
        string,
        string | 0,
        number,
        number,
      ]
      return { from, to: to === 0 ? from : to, seq, atMs }
    },
  }
}
