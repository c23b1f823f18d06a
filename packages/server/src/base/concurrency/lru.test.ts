import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createLru } from './lru.ts'

describe('the bounded map', () => {
  test('never holds more than its bound, keeps what was used last, and tells what it pushed out', () => {
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
          const held = [...lru.values()]
          expect(held.length).toBeLessThanOrEqual(entriesMax)
          expect(new Set(held).size).toBe(held.length)
          for (const value of held) expect(evicted).not.toContain(value)
          const lastUsed = [...new Set(recent.toReversed())].slice(0, entriesMax >> 1)
          for (const one of lastUsed) expect(held.some((value) => value.startsWith(`${one}:`))).toBe(true)
        })
      }),
    )
  })

  test('a deleted entry is gone and not told of', () => {
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
