import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createFrameReader, writeFrame } from './pipe-frames.ts'

test('messages arrive complete and in order, however their bytes are split', () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: 'grapheme', maxLength: 40 }), { maxLength: 8 }),
      fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 10 }),
      (texts, sizes) => {
        const bytes = Buffer.concat(texts.map((text) => writeFrame(text)))
        const found: string[] = []
        const take = createFrameReader((body) => found.push(body.toString()))
        for (let at = 0, index = 0; at < bytes.length; index++) {
          const size = sizes[index % sizes.length] as number
          take(bytes.subarray(at, at + size))
          at += size
        }
        expect(found).toEqual(texts)
      },
    ),
  )
})
