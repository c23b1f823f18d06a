import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { CsvError, CsvReader, type CsvRow, formatCsvRow, guardFormula, unguardFormula } from './csv.ts'

/** The rows of a text that arrives in pieces of this size. */
function read(text: string, size = 1, options: { delimiter?: string; rowCharsMax?: number } = {}): CsvRow[] {
  const reader = new CsvReader({ rowCharsMax: 1000, ...options })
  const rows: CsvRow[] = []
  for (let at = 0; at < text.length; at += size) rows.push(...reader.read(text.slice(at, at + size)))
  const last = reader.end()
  return last ? [...rows, last] : rows
}

const textsOf = (rows: readonly CsvRow[]): string[][] => rows.map(({ cells }) => cells.map(({ text }) => text))

describe('CSV', () => {
  test('[DB-IMPORT-6] rows, quotes, line breaks of every kind and lines are those of the text', () => {
    const rows = read('a,b\r\n1,"x ""y"" z"\r"line\r\nbreak",\n\n"",last')
    expect(textsOf(rows)).toEqual([
      ['a', 'b'],
      ['1', 'x "y" z'],
      ['line\r\nbreak', ''],
      ['', 'last'],
    ])
    expect(rows.map(({ line }) => line)).toEqual([1, 2, 3, 6])
    expect(rows[3]?.cells[0]).toEqual({ text: '', isQuoted: true })
    expect(rows[2]?.cells[1]).toEqual({ text: '', isQuoted: false })
    expect(textsOf(read('a;b\n1;2,3', 1, { delimiter: ';' }))).toEqual([
      ['a', 'b'],
      ['1', '2,3'],
    ])
    expect(read('')).toEqual([])
  })

  const faulty: readonly (readonly [text: string, line: number])[] = [
    ['a\n"open', 2],
    ['a\n\n"x"y', 3],
    ['a"b', 1],
    [`a\n${'x'.repeat(1001)}`, 2],
    [`"${'x\n'.repeat(600)}"`, 1],
  ]
  for (const [text, line] of faulty)
    test(`[DB-IMPORT-6] what is not CSV is named with its line: ${JSON.stringify(text.slice(0, 12))}`, () => {
      let error: unknown
      try {
        read(text)
      } catch (thrown) {
        error = thrown
      }
      expect(error).toBeInstanceOf(CsvError)
      expect((error as CsvError).line).toBe(line)
    })

  test('[DB-EXPORT-2] what is written is read again, however it arrives', () => {
    const cell = fc.option(fc.string({ unit: fc.constantFrom(...'ab",;\r\n\t =-@\'', 'é', '𝕏') }), { nil: null })
    // A row of one empty cell is a blank line.
    const row = fc.array(cell, { minLength: 2, maxLength: 4 })
    fc.assert(
      fc.property(fc.array(row), fc.integer({ min: 1, max: 7 }), (rows, size) => {
        const text = rows.map((one) => `${formatCsvRow(one)}\r\n`).join('')
        const cells = read(text, size).map((one) =>
          one.cells.map((c) => (c.text === '' && !c.isQuoted ? null : c.text)),
        )
        expect(cells).toEqual(rows)
      }),
    )
  })

  test('[DB-EXPORT-3] no cell is a formula, and its text comes back', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...`'=+-@\t\rx`) }), (text) => {
        expect(guardFormula(text)).not.toMatch(/^[=+\-@\t\r]/)
        expect(unguardFormula(guardFormula(text))).toBe(text)
      }),
    )
  })
})
