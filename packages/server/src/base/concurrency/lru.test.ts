import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createLru } from './lru.ts'

describe('the bounded map', () => {
  test('keeps at most the maximum of entries, retains recently used ones, and reports evictions', () => {
    const step = fc.record({ key: fc.nat(20), isRead: fc.boolean() })
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 8 }), fc.array(step, { maxLength: 100 }), (entriesMax, steps) => {
        const evicted: string[] = []
        const lru = createLru<number, string>(entriesMax, (value) => evicted.push(value))
        const recent: number[] = []
        steps.forEach(({ key, isRead }, i) => {
          if (isRead) {
            if (lru.get(key) === undefined) return
          } else lru.set(key, `${key}:${i}`)
          recent.push(key)
          const kept = [...lru.values()]
          expect(kept.length).toBeLessThanOrEqual(entriesMax)
          expect(new Set(kept).size).toBe(kept.length)
          for (const value of kept) expect(evicted).not.toContain(value)
          const lastUsed = [...new Set(recent.toReversed())].slice(0, entriesMax >> 1)
          for (const one of lastUsed) expect(kept.some((value) => value.startsWith(`${one}:`))).toBe(true)
        })
      }),
    )
  })

  test('a deleted entry is removed and not reported as evicted', () => {
    const evicted: string[] = []
    const lru = createLru<string, string>(4, (value) => evicted.push(value))
    lru.set('a', '1')
    lru.delete('a')
    expect(lru.get('a')).toBeUndefined()
    lru.set('b', '2')
    lru.clear()
    expect([...lru.values(), ...evicted]).toEqual([])
  })
})
