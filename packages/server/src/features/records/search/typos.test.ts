import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { countTypos, typosAllowed } from './typos.ts'

/** All words with one typo, over the letters of both words, for comparison with the matrix. */
function withOneTypo(word: string, letters: string): Set<string> {
  const found = new Set<string>()
  for (let at = 0; at <= word.length; at++) {
    const [before, after] = [word.slice(0, at), word.slice(at)]
    if (after.length > 0) found.add(before + after.slice(1))
    if (after.length > 1) found.add(`${before}${after[1]}${after[0]}${after.slice(2)}`)
    for (const letter of letters) {
      found.add(before + letter + after)
      if (after.length > 0) found.add(before + letter + after.slice(1))
    }
  }
  found.delete(word)
  return found
}

const words = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength: 7 })

test('[DB-SEARCH-15] one typo is an insertion, an omission, a replacement or a swap', () => {
  fc.assert(
    fc.property(words, words, (word, other) => {
      const expected = word === other ? 0 : withOneTypo(word, 'abc').has(other) ? 1 : null
      expect(countTypos([...word], [...other], 1)).toBe(word[0] === other[0] ? expected : null)
    }),
    { numRuns: 2000 },
  )
})

test('[DB-SEARCH-15] the count is the same in both directions, and null beyond the most', () => {
  fc.assert(
    fc.property(words, words, (word, other) => {
      const typos = countTypos([...word], [...other], 7)
      expect(countTypos([...other], [...word], 7)).toBe(typos)
      expect(countTypos([...word], [...other], 2)).toBe(typos !== null && typos <= 2 ? typos : null)
    }),
    { numRuns: 2000 },
  )
})

test.each([
  ['cat', 0],
  ['cats', 1],
  ['heidelb', 1],
  ['heidelbe', 2],
  ['route66', 0],
  ['x'.repeat(64), 2],
  ['x'.repeat(65), 0],
])('[DB-SEARCH-15] %s may have %i typos', (word, typos) => {
  expect(typosAllowed(word, word.length)).toBe(typos as 0 | 1 | 2)
})
