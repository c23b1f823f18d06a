import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { PackError, type PackedValue, PackWriter, unpack } from './msgpack.ts'

const depthMax = 64

function pack(value: PackedValue): Uint8Array {
  const writer = new PackWriter(1)
  writer.value(value)
  return writer.written().slice()
}

const bytesOf = (hex: string): Uint8Array => Uint8Array.fromHex(hex.replaceAll(' ', ''))

describe('MessagePack', () => {
  test('every JSON value is read as it was written', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false, maxDepth: 5 }), (value) => {
        const json = JSON.parse(JSON.stringify(value))
        expect(unpack(pack(json), depthMax)).toEqual(json)
      }),
      { numRuns: 500 },
    )
  })

  test.each<[PackedValue, string]>([
    [null, 'c0'],
    [false, 'c2'],
    [true, 'c3'],
    [0, '00'],
    [127, '7f'],
    [128, 'cc80'],
    [255, 'ccff'],
    [256, 'cd0100'],
    [65_536, 'ce00010000'],
    [4_294_967_295, 'ceffffffff'],
    [4_294_967_296, 'cb41f0000000000000'],
    [-1, 'ff'],
    [-32, 'e0'],
    [-33, 'd0df'],
    [-129, 'd1ff7f'],
    [-32_769, 'd2ffff7fff'],
    [-0, 'cb8000000000000000'],
    [1.5, 'cb3ff8000000000000'],
    ['', 'a0'],
    ['é', 'a2c3a9'],
    [[], '90'],
    [{}, '80'],
    [{ a: [1, 'b'] }, '81a1619201a162'],
  ])('%p is written as the format defines', (value, hex) => {
    expect(pack(value)).toEqual(bytesOf(hex))
    expect(unpack(bytesOf(hex), depthMax)).toEqual(value)
  })

  test('lengths at the borders of their forms', () => {
    for (const length of [9, 10, 11, 15, 16, 31, 32, 255, 256, 65_535, 65_536]) {
      for (const unit of ['a', 'é', '€']) {
        const text = unit.repeat(length)
        expect(unpack(pack(text), depthMax)).toBe(text)
      }
      const array = Array.from({ length }, () => 1)
      expect(unpack(pack(array), depthMax)).toEqual(array)
      const object = Object.fromEntries(array.map((value, at) => [`k${at}`, value]))
      expect(unpack(pack(object), depthMax)).toEqual(object)
    }
  })

  test.each([
    ['no bytes', ''],
    ['a text that ends early', 'a361'],
    ['a huge text', 'dbffffffff61'],
    ['a huge array', 'ddffffffff'],
    ['a huge map', 'dfffffffff'],
    ['a number that ends early', 'cd01'],
    ['bytes after the value', 'c0c0'],
    ['invalid UTF-8', 'a2c328'],
    ['a lone surrogate in UTF-8', 'a3eda080'],
    ['binary data', 'c40101'],
    ['an extension', 'd40101'],
    ['a timestamp', 'd6ff00000000'],
    ['the unused head', 'c1'],
    ['NaN', 'cb7ff8000000000000'],
    ['Infinity', 'ca7f800000'],
    ['a key that is not text', '810101'],
    ['too deep nesting', `${'91'.repeat(65)}c0`],
  ])('%s is refused', (_, hex) => {
    expect(() => unpack(bytesOf(hex), depthMax)).toThrow(PackError)
  })

  test('any bytes are read or refused, and nothing else happens', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          unpack(bytes, depthMax)
        } catch (error) {
          expect(error).toBeInstanceOf(PackError)
        }
      }),
      { numRuns: 2000 },
    )
  })

  test('a member named __proto__ is a member', () => {
    const value = unpack(bytesOf('81a95f5f70726f746f5f5f81a16101'), depthMax) as object
    expect(Object.keys(value)).toEqual(['__proto__'])
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
  })
})
