import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Ranking } from '../../../query/table.ts'
import { createRankedHighlighter } from './ranked-highlight.ts'
import { parseSearchTerms } from './search-terms.ts'
import { fold } from './words.ts'

const ranking: Ranking = { weights: [], typos: false, prefix: true, substring: false }
const highlighter = (q: string) => createRankedHighlighter(parseSearchTerms(q, ranking), '[', ']')

/** Characters with marks, of one and two UTF-16 units, that are longer, shorter or equal when folded. */
const characters = ['東', '京', 'か\u3099', 'が', 'か', '가', '각', 'กุ', 'ก', '𠮷', '𠮷\u0301', '京\u0301\u0302']
const text = (most: number) =>
  fc.array(fc.constantFrom(...characters), { minLength: 1, maxLength: most }).map((parts) => parts.join(''))

/** Marks by comparing the folded characters one by one. */
function naive(shown: string, q: string): string | null {
  const found = [...shown.matchAll(/\P{M}\p{M}*/gu)].map(([character]) => character)
  const searched = [...q.matchAll(/\P{M}\p{M}*/gu)].map(([character]) => fold(character))
  const isMarked = found.map(() => false)
  for (let at = 0; at + searched.length <= found.length; at++)
    if (searched.every((one, n) => one === fold(found[at + n] ?? ''))) isMarked.fill(true, at, at + searched.length)
  if (!isMarked.includes(true)) return null
  const marked = found.map((one, at) => {
    const [starts, ends] = [isMarked[at] && !isMarked[at - 1], isMarked[at] && !isMarked[at + 1]]
    return `${starts ? '[' : ''}${one}${ends ? ']' : ''}`
  })
  return marked.join('')
}

test('[DB-SEARCH-18] the characters of a text without spaces that match are marked, with their marks', () => {
  fc.assert(
    fc.property(text(40), text(3), (shown, q) => {
      const expected = naive(shown, q)
      // A snippet has at most five marks.
      if ((expected?.match(/\[/g)?.length ?? 0) <= 5) expect(highlighter(q)(shown)).toBe(expected)
    }),
    { numRuns: 3000 },
  )
})

test('[DB-SEARCH-18] a match late in a long text without spaces, of which only the first part is searched', () => {
  for (const filler of ['京', 'が', '가', '𠮷', 'か\u3099']) {
    const long = filler.repeat(20_000)
    expect(highlighter('東都')(`${long.slice(0, 40_000)}東都${long}`)).toContain('[東都]')
    expect(highlighter('東都')(`${long.slice(0, 40_000)}東都`, 10_000)).toBeNull()
  }
})

test('[DB-SEARCH-18] letters that compose across characters are marked with the whole text', () => {
  expect(highlighter('가')('나\u1100\u1161나')).toBe('[나\u1100\u1161나]')
})
