/**
 * Seals positions of a change log as cursors, and parses cursors. A cursor is bound to the log, to its history, and to
 * what the read rule allowed when it was issued; clients cannot forge one.
 */
import { createMac, equalsSecret } from '../../../base/crypto/hash.ts'
import { cursorCharsMax } from '../../../limits/subscriptions.ts'
import type { LogPosition } from '../change-feed.ts'

export interface CursorCodec {
  /** `log` identifies the log and its history, `access` what the caller may read. */
  format(log: string, access: string, position: LogPosition): string
  /** Null for a text that this server did not issue, or one for another log, history or access. */
  parse(log: string, access: string, text: string): LogPosition | null
}

type Content = readonly [
  from: string,
  /** 0 where it equals `from`. */
  to: string | 0,
  seq: number,
  atMs: number,
  mark: readonly [seq: number, atMs: number, hash: string] | 0,
]

export function createCursorCodec(secret: string): CursorCodec {
  // The purpose is part of every cursor that clients hold: another one would invalidate them.
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
      if (text.length > cursorCharsMax) return null
      const [content = '', sealed = '', ...rest] = text.split('.')
      if (rest.length > 0 || !equalsSecret(sealed, sealOf(log, access, content))) return null
      const [from, to, seq, atMs, mark] = JSON.parse(Buffer.from(content, 'base64url').toString()) as Content
      const change = mark === 0 ? null : { seq: mark[0], atMs: mark[1], hash: mark[2] }
      return { from, to: to === 0 ? from : to, seq, atMs, mark: change }
    },
  }
}
