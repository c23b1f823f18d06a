import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { findKeyMistake, keyInPath } from './keys.ts'

test('a key in a path is one segment, and comes back as it was', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', minLength: 1 }), (key) => {
      if (findKeyMistake(key) !== null) return
      expect(keyInPath(key)).toMatch(/^[\w.~%-]+$/)
      expect(decodeURIComponent(keyInPath(key))).toBe(key)
      expect(key.split('/').some((segment) => ['', '.', '..'].includes(segment))).toBe(false)
    }),
  )
})

describe('findKeyMistake', () => {
  test.each([
    '',
    '/',
    'a/',
    '/a',
    'a//b',
    '.',
    '..',
    'a/..',
    './a',
    'a\0',
    'a\u007f',
    '\ud800',
    'x'.repeat(1025),
    '€'.repeat(342),
  ])('%j has one', (key) => expect(findKeyMistake(key)).toBeString())
  test.each(['a', '...', 'a/b', '.a', 'a.', ' ', '\\', '€'.repeat(341)])('%j has none', (key) =>
    expect(findKeyMistake(key)).toBeNull(),
  )
})
