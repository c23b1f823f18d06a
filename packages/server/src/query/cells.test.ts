import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { CellError, formatCell, parseCell } from './cells.ts'
import type { FieldType } from './table.ts'

const field = (type: FieldType) => ({ type })
const plain = (text: string) => ({ text, isQuoted: false })

const valid: readonly (readonly [type: FieldType, text: string, value: unknown])[] = [
  ['number', ' -1.5e3 ', -1500],
  ['number', '+.5', 0.5],
  ['boolean', 'TRUE', true],
  ['boolean', '0', false],
  ['datetime', '2026-11-24', '2026-11-24'],
  ['json', '{"a":[1]}', { a: [1] }],
  ['json', "'-5", -5],
  ['geo', '[13.4,52.5]', [13.4, 52.5]],
  ['text', "'=1+1", '=1+1'],
  ['string', "it's", "it's"],
  ['number', '', null],
]
for (const [type, text, value] of valid)
  test(`[DB-IMPORT-7] ${JSON.stringify(text)} of a ${type} field is ${JSON.stringify(value)}`, () => {
    expect(parseCell(field(type), plain(text))).toEqual(value)
  })

for (const [type, text] of [
  ['number', '1,5'],
  ['number', '0x10'],
  ['number', 'Infinity'],
  ['boolean', 'perhaps'],
  ['json', '{a:1}'],
] as const)
  test(`[DB-IMPORT-7] ${JSON.stringify(text)} is not of type ${type}`, () => {
    expect(() => parseCell(field(type), plain(text))).toThrow(CellError)
  })

test('[DB-IMPORT-7] an empty cell is null, and a quoted one empty text', () => {
  expect(parseCell(field('text'), plain(''))).toBeNull()
  expect(parseCell(field('text'), { text: '', isQuoted: true })).toBe('')
  expect(() => parseCell(field('number'), { text: '', isQuoted: true })).toThrow(CellError)
})

test('[DB-EXPORT-2] a value of each type comes back as it was', () => {
  const values: Readonly<Partial<Record<FieldType, fc.Arbitrary<unknown>>>> = {
    text: fc.string(),
    number: fc.double({ noDefaultInfinity: true, noNaN: true }).map((value) => (value === 0 ? 0 : value)),
    boolean: fc.boolean(),
    json: fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value))),
    geo: fc.tuple(fc.integer({ min: -180, max: 180 }), fc.integer({ min: -90, max: 90 })),
  }
  for (const [type, value] of Object.entries(values))
    fc.assert(
      fc.property(fc.option(value), (one) => {
        const text = formatCell(field(type as FieldType), one)
        expect(parseCell(field(type as FieldType), { text: text ?? '', isQuoted: text === '' })).toEqual(one)
      }),
    )
})
