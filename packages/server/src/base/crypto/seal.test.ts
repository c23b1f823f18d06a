import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createSealer } from './seal.ts'

const secret = 'secret-for-tests-0123456789-0123456789'
const sealer = createSealer(secret, 'test')

test('gives back what was sealed, for the same place alone', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.string(), fc.string(), (text, place, other) => {
      const sealed = sealer.seal(text, place)
      expect(sealed).toMatch(/^1\.[\w-]+$/)
      expect(sealer.unseal(sealed, place)).toBe(text)
      expect(createSealer(secret, 'test').unseal(sealed, place)).toBe(text)
      if (other !== place) expect(() => sealer.unseal(sealed, other)).toThrow()
    }),
  )
})

test('the same text is never sealed the same way', () => {
  expect(new Set(Array.from({ length: 1000 }, () => sealer.seal('text', 'place'))).size).toBe(1000)
})

test('another secret, another purpose and any changed byte open nothing', () => {
  const sealed = sealer.seal('a secret', 'place')
  expect(() => createSealer(`${secret}x`, 'test').unseal(sealed, 'place')).toThrow()
  expect(() => createSealer(secret, 'other').unseal(sealed, 'place')).toThrow()
  const bytes = Buffer.from(sealed.slice(2), 'base64url')
  for (let at = 0; at < bytes.length; at++) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ 1
    expect(() => sealer.unseal(`1.${changed.toString('base64url')}`, 'place')).toThrow()
  }
  for (let length = 0; length < sealed.length; length++)
    expect(() => sealer.unseal(sealed.slice(0, length), 'place')).toThrow()
})
