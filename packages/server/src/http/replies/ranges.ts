/** Byte ranges of a download (RFC 9110 §14): which bytes are asked for. How they are sent is the answer's matter. */
import { rangesMax } from '../../limits/storage.ts'

/** Bytes `start` to `end`, the latter not included; never empty. */
export interface ByteSpan {
  readonly start: number
  readonly end: number
}

/**
 * The bytes a `Range` header asks for of a content of that size: null where it is to be ignored (malformed, another
 * unit, more than `rangesMax`), an empty list where none of them is there.
 */
export function parseRanges(header: string, size: number): readonly ByteSpan[] | null {
  const [unit, list, ...rest] = header.split('=')
  if (unit?.trim().toLowerCase() !== 'bytes' || list === undefined || rest.length > 0) return null
  const asked = list.split(',', rangesMax + 1)
  if (asked.length > rangesMax) return null
  const spans: ByteSpan[] = []
  for (const text of asked) {
    const match = /^[ \t]*(\d*)-(\d*)[ \t]*$/.exec(text)
    if (!match) return null
    const span = spanOf(match[1] as string, match[2] as string, size)
    if (span === null) return null
    if (span.start < span.end) spans.push(span)
  }
  return spans
}

/** Null for what is no range at all; empty for one that begins beyond the end. */
function spanOf(first: string, last: string, size: number): ByteSpan | null {
  if (first === '') {
    if (last === '') return null
    return { start: Math.max(0, size - Number(last)), end: size }
  }
  if (last !== '' && Number(last) < Number(first)) return null
  return { start: Number(first), end: last === '' ? size : Math.min(size, Number(last) + 1) }
}

/** `Content-Range` of bytes that are sent. */
export const contentRange = ({ start, end }: ByteSpan, size: number): string => `bytes ${start}-${end - 1}/${size}`
