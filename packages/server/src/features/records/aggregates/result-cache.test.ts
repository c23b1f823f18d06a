import { expect, test } from 'bun:test'
import { createResultCache } from './result-cache.ts'

const stamp = { snapshot: '1', atMs: 0 }
const result = (text: string) => ({ text, stamp })

test('[DB-AGG-14] the least recently used results are evicted beyond the number and the bytes', () => {
  const cache = createResultCache(3, 3000)
  for (const key of ['a', 'b', 'c']) cache.set(key, result(key))
  expect(cache.get('a')?.text).toBe('a')
  cache.set('d', result('d'))
  expect(['a', 'b', 'c', 'd'].map((key) => cache.get(key)?.text)).toEqual(['a', undefined, 'c', 'd'])
  cache.set('e', result('e'.repeat(1050)))
  expect(['a', 'c', 'd', 'e'].map((key) => cache.get(key)?.text.length)).toEqual([undefined, undefined, 1, 1050])
  cache.set('f', result('f'.repeat(1500)))
  expect(['d', 'e', 'f'].map((key) => cache.get(key)?.text.length)).toEqual([1, 1050, undefined])
  // A replaced result no longer counts.
  for (let n = 0; n < 10; n++) cache.set('e', result('e'.repeat(1050)))
  expect(cache.get('d')?.text).toBe('d')
})
