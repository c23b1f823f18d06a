import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type JsonValue, jsonBytes, jsonText } from './json.ts'

test('text and bytes of a value are what the runtime makes of it', () => {
  const texts = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.string({ minLength: 60, maxLength: 70 }))
  const numbers = fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer({ min: -10, max: 200_000 }))
  fc.assert(
    fc.property(fc.oneof(texts, numbers, fc.boolean(), fc.jsonValue()), (value) => {
      expect(jsonText(value as JsonValue)).toBe(JSON.stringify(value))
      expect(jsonBytes(value as JsonValue)).toBe(Buffer.byteLength(JSON.stringify(value)))
    }),
    { numRuns: 2000 },
  )
})
