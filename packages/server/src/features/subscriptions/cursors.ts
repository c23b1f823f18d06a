/**
 * Cursors: places of a change log as clients carry them. Sealed, so that a cursor is only ever one the server gave, and
 * bound to the log, to its history, and to what the read rule allowed when it was given.
 */
import { createMac, equalsSecret } from '../../base/crypto/hash.ts'
import { placeCharsMax } from '../../limits/subscriptions.ts'
import type { Place } from './feed.ts'

export interface Cursors {
  /** `log` tells logs and their histories apart, `access` what different callers may read. */
  format(log: string, access: string, place: Place): string
  /** Null for a text that is none of ours, or one of another log, history or access. */
  parse(log: string, access: string, text: string): Place | null
}

type Content = readonly [
  from: string,
  /** 0 for the same. */
  to: string | 0,
  seq: number,
  atMs: number,
  mark: readonly [seq: number, atMs: number, hash: string] | 0,
]

export function createCursors(secret: string): Cursors {
  const seal = createMac(secret, 'change-place')
  const sealOf = (log: string, access: string, content: string): string => seal(`${log}\n${access}\n${content}`)
  return {
    format(log, access, { from, to, seq, atMs, mark }) {
      const change = mark ? ([mark.seq, mark.atMs, mark.hash] as const) : 0
      const parts: Content = [from, from === to ? 0 : to, seq, atMs, change]
      const content = Buffer.from(JSON.stringify(parts)).toString('base64url')
      return `${content}.${sealOf(log, access, content)}`
    },
    parse(log, access, text) {
      if (text.length > placeCharsMax) return null
      const [content = '', sealed = '', ...rest] = text.split('.')
      if (rest.length > 0 || !equalsSecret(sealed, sealOf(log, access, content))) return null
      const [from, to, seq, atMs, mark] = JSON.parse(Buffer.from(content, 'base64url').toString()) as Content
      const change = mark === 0 ? null : { seq: mark[0], atMs: mark[1], hash: mark[2] }
      return { from, to: to === 0 ? from : to, seq, atMs, mark: change }
    },
  }
}
