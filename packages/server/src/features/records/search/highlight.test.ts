import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createHighlighter } from './highlight.ts'
import { parseSearchWords } from './words.ts'

const pieces = [
  'a',
  'ab',
  'A',
  'b1',
  '1',
  '12',
  'Ba',
  'z',
  ' ',
  '-',
  '<',
  '&',
  '_',
  "'",
  '"',
  '.',
  '\n',
  '$',
  '(',
  '|',
  '*',
]
const text = fc.array(fc.constantFrom(...pieces), { maxLength: 14 }).map((parts) => parts.join(''))

test('ASCII texts, which are not tokenized, get the same highlights as other texts', () =>
  fc.assert(
    fc.property(text, text, (searched, shown) => {
      const words = parseSearchWords(searched)
      const highlight = createHighlighter(words, '[', ']')
      // The em dash is not ASCII and not part of a word.
      const marked = highlight(`${shown}\u2014`)
      expect(highlight(shown)).toBe(marked === null ? null : marked.slice(0, -1))
    }),
    { numRuns: 3000 },
  ))

test.each([
  ['zeb', 'Zebra and zeb', '[Zebra] and [zeb]'],
  ['zeb stripes', 'Zebra, zeb: stripes!', 'Zebra, [zeb]: [stripes]!'],
  ['a', 'a_a ab', '[a]_[a] [ab]'],
  ['CAFÉ x', 'cafe <café> x2', '[cafe] &lt;[café]&gt; [x2]'],
  ['café y', 'a cafe', 'a [cafe]'],
  ['東京', 'in 東京都', 'in [東京都]'],
  ['東京', 'in Tokyo', null],
  ['a.b', 'b & a', '[b] &amp; [a]'],
])('a search for %s highlights %s', (searched, shown, marked) => {
  expect(createHighlighter(parseSearchWords(searched), '[', ']')(shown)).toBe(marked)
})
