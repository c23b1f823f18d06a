/** Text as both SQL engines treat it: ordered by code point, well-formed, without NUL. */

/**
 * Orders by Unicode code point (the order of UTF-8 bytes); JavaScript's own `<` orders by UTF-16 unit and differs
 * beyond U+FFFF.
 */
export function compareText(a: string, b: string): number {
  if (a === b) return 0
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i)
    const y = b.charCodeAt(i)
    if (x !== y) {
      const xIsSurrogate = x >= 0xd800 && x <= 0xdfff
      const yIsSurrogate = y >= 0xd800 && y <= 0xdfff
      // A surrogate belongs to a code point above all others.
      if (xIsSurrogate !== yIsSurrogate) return xIsSurrogate ? 1 : -1
      return x - y
    }
  }
  return a.length - b.length
}

/** Neither NUL nor lone surrogates: what every engine stores and returns unchanged. */
export const isStorableText = (text: string): boolean => !text.includes('\0') && text.isWellFormed()

/** Length in code points, which is what `min` and `max` of a text field count. */
export function codePointLength(text: string): number {
  let length = 0
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit >= 0xd800 && unit <= 0xdbff) i++
    length++
  }
  return length
}

/**
 * The least text above every text with this prefix, in code point order; null for an empty prefix.
 */
export function findPrefixEnd(prefix: string): string | null {
  const points = [...prefix]
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    const code = last.codePointAt(0) as number
    // Skips the surrogates.
    if (code < 0x10ffff) return points.join('') + String.fromCodePoint(code === 0xd7ff ? 0xe000 : code + 1)
  }
  return null
}

/** Whether a text has more than `bytesMax` bytes in UTF-8. A unit takes at most three: short texts are not measured. */
export const isLongerThan = (bytesMax: number, text: string): boolean =>
  text.length * 3 > bytesMax && Buffer.byteLength(text) > bytesMax
