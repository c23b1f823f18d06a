import { expect, test } from 'bun:test'
import { matchesEtag, matchesStrongly } from './etags.ts'

test.each([
  ['"a"', true],
  ['"b", "a"', true],
  [', "b",, "a" ,', true],
  ['"b,c","a"', true],
  ['*', true],
  ['"b"', false],
  ['a', false],
  ['x"a"', false],
  ['"b" "a"', false],
  ['"b"x, "a"', false],
  ['"a', false],
  ['*, "a"', false],
  ['"x y", "a"', false],
  ['', false],
])('%p names "a": %p, in both comparisons', (list, expected) => {
  expect(matchesEtag(list, '"a"')).toBe(expected)
  expect(matchesStrongly(list, '"a"')).toBe(expected)
})

test('a weak ETag matches only If-None-Match', () => {
  expect([matchesEtag('W/"a"', '"a"'), matchesEtag('"a"', 'W/"a"')]).toEqual([true, true])
  expect([matchesStrongly('W/"a"', '"a"'), matchesStrongly('"a"', 'W/"a"')]).toEqual([false, false])
})

test('a long malformed list is refused in one pass', () => {
  expect(matchesEtag(`${'"b",'.repeat(4000)}x`, '"a"')).toBe(false)
  expect(matchesEtag(`"b"${', '.repeat(8000)}x`, '"a"')).toBe(false)
})
