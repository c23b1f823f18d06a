import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { rangesMax } from '../../limits/storage.ts'
import { contentRange, parseRanges } from './ranges.ts'

describe('parseRanges', () => {
  test('parsed ranges are never empty and never exceed the content', () => {
    const size = fc.integer({ min: 0, max: 1000 })
    const part = fc.oneof(
      fc.tuple(fc.nat(2000), fc.nat(2000)).map(([a, b]) => `${a}-${b}`),
      fc.nat(2000).map((a) => `${a}-`),
      fc.nat(2000).map((a) => `-${a}`),
      fc.bigInt({ min: 0n, max: 10n ** 30n }).map((a) => `${a}-${a + 1n}`),
      fc.string(),
    )
    fc.assert(
      fc.property(size, fc.array(part, { maxLength: 12 }), (bytes, parts) => {
        const spans = parseRanges(`bytes=${parts.join(',')}`, bytes)
        if (parts.length > rangesMax) expect(spans).toBeNull()
        for (const { start, end } of spans ?? []) {
          expect(start).toBeGreaterThanOrEqual(0)
          expect(end).toBeGreaterThan(start)
          expect(end).toBeLessThanOrEqual(bytes)
        }
      }),
    )
  })

  test('a range covers the bytes that RFC 9110 defines', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 50 }), fc.nat(60), fc.nat(60), (size, first, last) => {
        const wanted = Array.from({ length: size }, (_, at) => at).filter((at) => at >= first && at <= last)
        const spans = parseRanges(`bytes=${first}-${last}`, size)
        if (last < first) expect(spans).toBeNull()
        else expect(spans?.flatMap(({ start, end }) => wanted.slice(start - first, end - first)) ?? []).toEqual(wanted)
      }),
    )
  })

  test.each([
    ['bytes=-3', 10, [{ start: 7, end: 10 }]],
    ['bytes=-30', 10, [{ start: 0, end: 10 }]],
    ['bytes=-0', 10, []],
    ['bytes=-5', 0, []],
    ['bytes=0-', 0, []],
    [
      'bytes = 1-2 , 4-5',
      10,
      [
        { start: 1, end: 3 },
        { start: 4, end: 6 },
      ],
    ],
    ['bytes=5-4', 10, null],
    ['bytes=', 10, null],
    ['bytes=1-2,', 10, null],
    ['items=1-2', 10, null],
    ['bytes=+1-2', 10, null],
    ['bytes=0x1-2', 10, null],
  ])('%s of %d', (header, size, spans) => {
    expect(parseRanges(header, size)).toEqual(spans)
  })

  test('parsing takes linear time', () => {
    const header = `bytes=${'1'.repeat(100_000)}-${' '.repeat(100_000)}`
    expect(parseRanges(header, 10)).toEqual([])
  })

  test('contentRange', () => expect(contentRange({ start: 2, end: 5 }, 10)).toBe('bytes 2-4/10'))
})
