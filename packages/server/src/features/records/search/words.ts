/**
 * Words of texts, in records and in searches: runs of letters, digits and private-use characters, compared without case
 * and diacritics, as in the engines' full-text indexes.
 */
import { codePointLength, isStorableText } from '../../../base/text/text.ts'
import { badRequest } from '../../../errors.ts'
import { indexedWordCharsMax, searchTextCharsMax, searchWordsMax } from '../../../limits/api.ts'

export const wordPattern = /[\p{L}\p{N}\p{M}\p{Co}]+/gu
const marks = /\p{M}/gu

export const ascii = /^[\0-\x7f]*$/

/** Lower case without diacritics, recomposed, since Hangul syllables decompose into letters that are not marks. */
export const fold = (word: string): string =>
  ascii.test(word) ? word.toLowerCase() : word.toLowerCase().normalize('NFD').replace(marks, '').normalize('NFC')

export interface SearchWord {
  /** As typed: the engine's index folds it itself. */
  readonly text: string
  readonly folded: string
  /** The last word matches as a prefix, since the user may still be typing it. */
  readonly isPrefix: boolean
}

export const truncate = (text: string, chars: number): string =>
  text.length <= chars ? text : Array.from(text).slice(0, chars).join('')

/** The shortest prefix of a word, as typed, that has `chars` code points when folded. */
function truncateTyped(word: string, chars: number): string {
  const points = Array.from(word)
  let [enough, tooFew] = [points.length, 0]
  while (enough - tooFew > 1) {
    const middle = (enough + tooFew) >> 1
    if (codePointLength(fold(points.slice(0, middle).join(''))) >= chars) enough = middle
    else tooFew = middle
  }
  return points.slice(0, enough).join('')
}

/** A word that reaches the bound matches as a prefix, since the rest is not compared. */
function parseWord(word: string, isLast: boolean): SearchWord {
  const folded = fold(word)
  if (codePointLength(folded) < indexedWordCharsMax) return { text: word, folded, isPrefix: isLast }
  const text = truncateTyped(word, indexedWordCharsMax)
  return { text, folded: truncate(folded, indexedWordCharsMax), isPrefix: true }
}

/** Throws 400 for a search text that no engine takes. */
export function checkSearchText(text: string): void {
  if (text.length > searchTextCharsMax) throw badRequest(`q: at most ${searchTextCharsMax} characters are allowed`)
  if (!isStorableText(text)) throw badRequest('q: must be text without NUL or unpaired surrogates')
}

/** Throws 400 if a search has too many words. */
export function checkWordCount(count: number): void {
  if (count > searchWordsMax) throw badRequest(`q: at most ${searchWordsMax} words are allowed`)
}

/** The words of a search text, possibly none. Throws 400 if there are too many. */
export function parseSearchWords(text: string): SearchWord[] {
  checkSearchText(text)
  const words = (text.match(wordPattern) ?? []).filter((word) => fold(word) !== '')
  checkWordCount(words.length)
  return words.map((word, i) => parseWord(word, i === words.length - 1))
}

/** The folded words of a text, for engines whose index does not tokenize; none if it is not text. */
export const tokenize = (text: unknown): string[] =>
  typeof text === 'string'
    ? (text.match(wordPattern) ?? [])
        .map((word) => truncate(fold(word), indexedWordCharsMax))
        .filter((word) => word !== '')
    : []
