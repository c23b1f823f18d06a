/** What a search text asks for in a table with a ranking, and whether a segment of a text matches it. */
import { codePointLength } from '../../../base/text/text.ts'
import { indexedWordCharsMax, unspacedCharsMax, wordPartChars } from '../../../limits/api.ts'
import type { Ranking } from '../../../query/table.ts'
import { segmentsOf } from './segments.ts'
import { countTypos, typosAllowed } from './typos.ts'
import { checkSearchText, checkWordCount, truncate } from './words.ts'

/** A word of a search. */
interface SearchedWord {
  readonly kind: 'word'
  readonly folded: string
  readonly points: readonly string[]
  readonly isPrefix: boolean
  readonly typos: 0 | 1 | 2
  /** Whether it matches within longer words. */
  readonly isPart: boolean
}

/** A text without spaces, which matches wherever it occurs. */
interface SearchedText {
  readonly kind: 'unspaced'
  readonly folded: string
  readonly points: readonly string[]
}

/** What every result must have. */
export type SearchTerm = SearchedWord | SearchedText

/** The terms of a search text, each once; none for a text without words. Throws 400 if there are too many. */
export function parseSearchTerms(text: string, { typos, prefix, substring }: Ranking): readonly SearchTerm[] {
  checkSearchText(text)
  const segments = [...segmentsOf(text)]
  checkWordCount(segments.length)
  const terms = new Map<string, SearchTerm>()
  for (const [at, { folded: complete, isUnspaced }] of segments.entries()) {
    const folded = truncate(complete, isUnspaced ? unspacedCharsMax : indexedWordCharsMax)
    const points = Array.from(folded)
    const isPrefix = prefix && !isUnspaced && at === segments.length - 1
    if (isUnspaced) terms.set(folded, { kind: 'unspaced', folded, points })
    else
      terms.set(`${folded}${isPrefix ? '*' : ''}`, {
        kind: 'word',
        folded,
        points,
        isPrefix,
        typos: typos ? typosAllowed(folded, points.length) : 0,
        isPart: substring && points.length >= wordPartChars,
      })
  }
  return [...terms.values()]
}

/** Whether a word of a text matches the searched one. */
export function matchesWord(searched: SearchedWord, complete: string): boolean {
  const { folded, points, isPrefix, isPart, typos } = searched
  const word = truncate(complete, indexedWordCharsMax)
  if (word === folded || (isPrefix && word.startsWith(folded)) || (isPart && word.includes(folded))) return true
  if (typos === 0 || !word.startsWith(points[0] ?? '')) return false
  return (
    Math.abs(codePointLength(word) - points.length) <= typos && countTypos(points, Array.from(word), typos) !== null
  )
}
