/** The JSON of a row is that of its decoded object, whatever its values. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import pg from 'pg'
import { encodedRowsMinBytes } from '../../../limits/api.ts'
import { encodeRows } from '../../sql/encoded-rows.ts'
import { createRowLayout, DataRow } from './data-row.ts'

const { builtins } = pg.types
const layout = createRowLayout([
  { name: 'title', type: builtins.TEXT },
  { name: 'views', type: builtins.FLOAT8 },
  { name: 'isOpen', type: builtins.BOOL },
  { name: 'tags', type: builtins.JSON },
  { name: '_bytes', type: builtins.INT4 },
])

type Row = readonly [title: string | null, views: number | null, isOpen: boolean | null, tags: string | null]

/** The message of a row, in the middle of others. */
function received([title, views, isOpen, tags]: Row): DataRow {
  const open = isOpen === null ? null : isOpen ? 't' : 'f'
  const values = [title, views === null ? null : String(views), open, tags, '12']
  const parts = [Buffer.from('before'), Buffer.from([0, values.length])]
  for (const value of values) {
    const bytes = Buffer.from(value ?? '')
    const length = Buffer.alloc(4)
    length.writeInt32BE(value === null ? -1 : bytes.length)
    parts.push(length, bytes)
  }
  const message = Buffer.concat([...parts, Buffer.from('after')])
  return new DataRow(layout, message, 'before'.length, message.length - 'after'.length)
}

const objectOf = ([title, views, isOpen, tags]: Row) => ({
  title,
  views,
  isOpen,
  tags: tags === null ? null : JSON.parse(tags),
})

const textOf = (rows: readonly Row[]): string => Buffer.from(encodeRows('[', rows.map(received), ']')).toString()

const maybe = <T>(values: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(values)
const titles = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.constantFrom(...'"\\\n\t\b\f\r\x01\x1f\x7fé€🙂') }),
)
const rows: fc.Arbitrary<Row> = fc.tuple(
  maybe(titles),
  maybe(fc.oneof(fc.integer(), fc.double())),
  maybe(fc.boolean()),
  maybe(fc.json()),
)

test('rows are written as the JSON of their objects', () => {
  fc.assert(
    fc.property(fc.array(rows, { maxLength: 5 }), (page) => {
      const plain = page.map(
        ([title, views, isOpen, tags]): Row => [title, views, isOpen, tags && JSON.stringify(JSON.parse(tags))],
      )
      expect(textOf(plain)).toBe(JSON.stringify(plain.map(objectOf)))
    }),
  )
})

/** One row with one column, as its message. */
function receivedValue(type: number, value: string): DataRow {
  const bytes = Buffer.from(value)
  const message = Buffer.concat([Buffer.from([0, 1, 0, 0, 0, bytes.length]), bytes])
  return new DataRow(createRowLayout([{ name: 'value', type }]), message, 0, message.length)
}

const jsonOf = (row: DataRow): string => Buffer.from(encodeRows('', [row], '')).toString()

const numbers = ['0', '-0', '-1', '12.5', '-0.001', '1e-05', '1.5e+15', '123456789012345', '1234567890123456', 'NaN']

test.each(numbers)('the number %s is written as JavaScript writes it', (text) => {
  expect(jsonOf(receivedValue(builtins.FLOAT8, text))).toBe(JSON.stringify({ value: Number(text) }))
})

test('a type that stays text is written as text, even if it looks like a number', () => {
  expect(jsonOf(receivedValue(builtins.NUMERIC, '12.50'))).toBe('{"value":"12.50"}')
})

test('texts of every length and alignment are escaped where they must be', () => {
  for (let length = 0; length < 12; length++)
    for (let at = 0; at < length; at++)
      for (const special of ['"', '\\', '\n', '\x00', '\x1f', ' ', '\x7f', 'é', '🙂']) {
        const text = `${'a'.repeat(at)}${special}${'z'.repeat(length - at - 1)}`
        expect(jsonOf(receivedValue(builtins.TEXT, text))).toBe(JSON.stringify({ value: text }))
      }
})

test('rows that exceed the buffer are written completely', () => {
  const page = Array.from({ length: 40 }, (_, at): Row => ['"'.repeat(encodedRowsMinBytes / 8), at, true, '{}'])
  expect(JSON.parse(textOf(page))).toEqual(page.map(objectOf))
  expect(textOf([['short', 1, false, null]])).toBe('[{"title":"short","views":1,"isOpen":false,"tags":null}]')
})

test('a decoded row has the columns of its JSON, and the others are read by their index', () => {
  const row = received([null, 2.5, true, '[1]'])
  expect(row.decode()).toEqual({ title: null, views: 2.5, isOpen: true, tags: '[1]' })
  expect(row.decode(['views', 'title'])).toEqual({ title: null, views: 2.5 })
  expect([0, 1, 4].map((at) => row.column(at))).toEqual([null, 2.5, 12])
})

test('a row whose columns are all internal is an empty object', () => {
  const message = Buffer.from([0, 1, 0, 0, 0, 1, 0x37])
  const row = new DataRow(createRowLayout([{ name: '_bytes', type: builtins.INT4 }]), message, 0, message.length)
  expect(jsonOf(row)).toBe('{}')
  expect(row.decode()).toEqual({})
})
