import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { JsonArrayReader, type JsonItem, JsonItemsError, type JsonItemsReader, NdjsonReader } from './json-items.ts'

function read(reader: JsonItemsReader, text: string, size = 1): JsonItem[] {
  const items: JsonItem[] = []
  for (let at = 0; at < text.length; at += size) items.push(...reader.read(text.slice(at, at + size)))
  const last = reader.end()
  return last ? [...items, last] : items
}

const valuesOf = (items: readonly JsonItem[]): unknown[] => items.map(({ text }) => JSON.parse(text))

test('[DB-IMPORT-6] values are found with their lines', () => {
  const array = read(new JsonArrayReader(100), ' [\n{"a":"]},[\\"",\n"b":[1,{}]},\n 5 , "x"\n]\n')
  expect(valuesOf(array)).toEqual([{ a: ']},["', b: [1, {}] }, 5, 'x'])
  expect(array.map(({ line }) => line)).toEqual([2, 4, 4])
  const lines = read(new NdjsonReader(100), '{"a":1}\r\n\n{"b":2}')
  expect(valuesOf(lines)).toEqual([{ a: 1 }, { b: 2 }])
  expect(lines.map(({ line }) => line)).toEqual([1, 3])
  expect(read(new JsonArrayReader(100), '[]')).toEqual([])
})

test('[DB-IMPORT-6] values of every kind are found, however they arrive', () => {
  const size = fc.integer({ min: 1, max: 9 })
  fc.assert(
    fc.property(fc.array(fc.jsonValue()), size, fc.boolean(), (values, pieces, isPretty) => {
      const reader = new JsonArrayReader(100_000)
      const text = JSON.stringify(values, null, isPretty ? 2 : 0)
      expect(JSON.stringify(valuesOf(read(reader, text, pieces)))).toBe(JSON.stringify(values))
      const lines = values.map((value) => `${JSON.stringify(value)}\n`).join('')
      const found = valuesOf(read(new NdjsonReader(100_000), lines, pieces))
      expect(JSON.stringify(found)).toBe(JSON.stringify(values))
    }),
  )
})

const faulty: readonly (readonly [text: string, line: number])[] = [
  ['\n{}', 2],
  ['[1', 1],
  ['', 1],
  ['[1]\n[2]', 2],
  ['[1,\n]', 2],
  ['[,1]', 1],
  ['["open]', 1],
  [`[\n"${'x'.repeat(100)}"]`, 2],
]
for (const [text, line] of faulty)
  test(`[DB-IMPORT-6] what is no array is named with its line: ${JSON.stringify(text.slice(0, 10))}`, () => {
    let error: unknown
    try {
      read(new JsonArrayReader(100), text)
    } catch (thrown) {
      error = thrown
    }
    expect(error).toBeInstanceOf(JsonItemsError)
    expect((error as JsonItemsError).line).toBe(line)
  })

test('[DB-IMPORT-6] a line that is too long is refused, also before it ends', () => {
  expect(() => read(new NdjsonReader(10), `1\n"${'x'.repeat(20)}`)).toThrow(JsonItemsError)
  expect(() => read(new NdjsonReader(10), `"${'x'.repeat(20)}"\n`, 100)).toThrow(JsonItemsError)
})
