import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { findPrefixEnd } from './text.ts'

const byCodePoint = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))
const text = fc.string({ unit: 'binary', maxLength: 4 }).filter((one) => one.isWellFormed())

test('the end of a prefix is above what begins with it, and nothing else lies between', () => {
  fc.assert(
    fc.property(text, text, (prefix, other) => {
      const end = findPrefixEnd(prefix)
      const isBetween = byCodePoint(other, prefix) >= 0 && (end === null || byCodePoint(other, end) < 0)
      expect(isBetween).toBe(other.startsWith(prefix))
    }),
    {
      numRuns: 2000,
      examples: [
        ['\u{10ffff}', '\u{10ffff}a'],
        ['\ud7ff', '\ue000'],
        ['a\u{10ffff}', 'b'],
        ['', 'x'],
      ],
    },
  )
})
