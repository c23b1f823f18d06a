/** Cells as spreadsheets exchange them: tabs, line breaks, quotes, and tables of HTML. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { formatCells, parseCells, parseHtmlCells } from '../../../src/areas/data/clipboard/cells-text.ts'

test.each([
  [
    'a\tb\r\nc\td\r\n',
    [
      ['a', 'b'],
      ['c', 'd'],
    ],
  ],
  ['one', [['one']]],
  ['', [['']]],
  [
    'a\t\n\tb',
    [
      ['a', ''],
      ['', 'b'],
    ],
  ],
  ['"two\nlines"\tb', [['two\nlines', 'b']]],
  ['"a ""quoted"" tab\t"\tb', [['a "quoted" tab\t', 'b']]],
  ['a "quote" inside\tb', [['a "quote" inside', 'b']]],
  ['"not" closed\tb', [['"not" closed', 'b']]],
  ['"open\tb', [['"open', 'b']]],
])('%j', (text, cells) => {
  expect(parseCells(text)).toEqual(cells)
})

test('what was copied is pasted as it was', () => {
  const cell = fc.string({ unit: fc.constantFrom('a', '"', '\t', '\n', '\r', ' ') })
  const table = fc
    .tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 4 }))
    .chain(([width, height]) =>
      fc.array(fc.array(cell, { minLength: width, maxLength: width }), { minLength: height, maxLength: height }),
    )
  fc.assert(
    fc.property(table, (cells) => {
      // A last row of one empty cell is the end of the text.
      fc.pre(!(cells.length > 1 && cells.at(-1)?.join('') === '' && cells.at(-1)?.length === 1))
      expect(parseCells(formatCells(cells))).toEqual(cells)
    }),
  )
})

test('the cells of a table of HTML', () => {
  const html =
    '<meta><table><tr><th>a &amp; b</th><td style="x">1<br>2</td></tr><TR><td><b>&lt;i&gt;</b></td></TR></table>'
  expect(parseHtmlCells(html)).toEqual([['a & b', '1\n2'], ['<i>']])
  expect(parseHtmlCells('<p>no table</p>')).toEqual([])
})
