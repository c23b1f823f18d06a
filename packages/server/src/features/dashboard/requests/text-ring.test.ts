import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { TextRing } from './text-ring.ts'

test('the ring has the last texts, the newest first, whatever their length', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }), { maxLength: 12 }), (added) => {
      const ring = new TextRing(5, 16)
      const slots = new Map(added.map((text) => [ring.add(text), text]))
      const newest = [...ring.newest()]
      expect(newest.map(({ text }) => text)).toEqual(added.slice(-5).toReversed())
      for (const { slot, text } of newest) expect(slots.get(slot)).toBe(text)
    }),
  )
})
