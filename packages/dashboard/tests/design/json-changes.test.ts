/** What of a JSON value has changed. */
import { expect, test } from 'bun:test'
import { changesBetween, pointerOf } from '../../src/design/json/changes.ts'

const changesOf = (before: unknown, after: unknown): object => Object.fromEntries(changesBetween(before, after))

test('equal values have no changes', () => {
  expect(changesOf({ a: [1, { b: null }] }, { a: [1, { b: null }] })).toEqual({})
  expect(changesOf(1, 1)).toEqual({})
})

test('changed, added and removed values are found with the containers around them', () => {
  expect(changesOf({ a: { b: 1, c: 2 }, d: 3 }, { a: { b: 1, c: 4 }, d: 3 })).toEqual({
    '': 'inside',
    '/a': 'inside',
    '/a/c': 'self',
  })
  expect(changesOf({ a: {} }, { a: { b: 1 } })).toEqual({ '': 'inside', '/a': 'inside', '/a/b': 'self' })
  expect(changesOf({ a: { b: 1 } }, { a: {} })).toEqual({ '': 'inside', '/a': 'self' })
  expect(changesOf({ a: [1] }, { a: { 0: 1 } })).toEqual({ '': 'inside', '/a': 'self' })
  expect(changesOf([1, 2], [1])).toEqual({ '': 'self' })
})

test('keys that look like paths or like members of objects are keys', () => {
  expect(pointerOf('/a', '~/')).toBe('/a/~0~1')
  const before = JSON.parse('{"__proto__": 1, "toString": 2}')
  const after = JSON.parse('{"__proto__": 1, "toString": 3}')
  expect(changesOf(before, after)).toEqual({ '': 'inside', '/toString': 'self' })
})
