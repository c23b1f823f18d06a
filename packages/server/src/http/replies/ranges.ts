/** Parses the `Range` header of a download (RFC 9110 §14). */
import { rangesMax } from '../../limits/storage.ts'

/** Bytes `start` to `end`, the latter not included; never empty. */
export interface ByteSpan {
  readonly start: number
  readonly end: number
}

/**
 * The byte ranges that a `Range` header requests of content of that size: null if the header is to be ignored
 * (malformed, another unit, more than `rangesMax`), an empty list if none is satisfiable.
 */
export function parseRanges(header: string, size: number): readonly ByteSpan[] | null {
  const [unit, list, ...rest] = header.split('=')
  if (unit?.trim().toLowerCase() !== 'bytes' || list === undefined || rest.length > 0) return null
  const requested = list.split(',', rangesMax + 1)
  if (requested.length > rangesMax) return null
  const spans: ByteSpan[] = []
  for (const text of requested) {
    const match = /^[ \t]*(\d*)-(\d*)[ \t]*$/.exec(text)
    if (!match) return null
    const span = spanOf(match[1] as string, match[2] as string, size)
    if (span === null) return null
    if (span.start < span.end) spans.push(span)
  }
  return spans
}

/** Null for a malformed range; empty for one that begins beyond the end. */
function spanOf(first: string, last: string, size: number): ByteSpan | null {
  if (first === '') {
    if (last === '') return null
    return { start: Math.max(0, size - Number(last)), end: size }
  }
  if (last !== '' && Number(last) < Number(first)) return null
  return { start: Number(first), end: last === '' ? size : Math.min(size, Number(last) + 1) }
}

/** The `Content-Range` of a range. */
export const contentRange = ({ start, end }: ByteSpan, size: number): string => `bytes ${start}-${end - 1}/${size}`
