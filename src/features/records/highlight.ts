/**
 * Search text: cutting the caller's words, and marking where they stand in a field. Words are runs of letters, digits
 * and private-use characters, compared without case and diacritics, as the engines' full-text indexes do.
 */

import { isStorableText } from '../../base/text.ts'
import { badRequest } from '../../errors.ts'
import { searchTextCharsMax, searchWordsMax } from '../../limits.ts'

const wordPattern = /[\p{L}\p{N}\p{M}\p{Co}]+/gu
const marks = /\p{M}/gu

const ascii = /^[\0-\x7f]*$/

/** Lower case, without diacritics, composed again (Hangul syllables decompose into letters, which are no marks). */
const fold = (word: string): string =>
  ascii.test(word) ? word.toLowerCase() : word.toLowerCase().normalize('NFD').replace(marks, '').normalize('NFC')

export interface SearchWord {
  /** As typed: the engine's index folds it by its own tables. */
  readonly text: string
  readonly folded: string
  /** The last word also matches as a beginning: the caller may still be typing it. */
  readonly isPrefix: boolean
}

/** The words of a search text; possibly none. Throws 400 when there are too many. */
export function parseSearchWords(text: string): SearchWord[] {
  if (text.length > searchTextCharsMax) throw badRequest(`q: at most ${searchTextCharsMax} characters are allowed`)
  if (!isStorableText(text)) throw badRequest('q: must be text without NUL or broken characters')
  const words = (text.match(wordPattern) ?? []).filter((word) => fold(word) !== '')
  if (words.length > searchWordsMax) throw badRequest(`q: at most ${searchWordsMax} words are allowed`)
  return words.map((word, i) => ({ text: word, folded: fold(word), isPrefix: i === words.length - 1 }))
}

/** A lexeme of some engines is bounded; longer runs of letters are no words. */
const indexedWordCharsMax = 255

/** The folded words of a text, for engines whose index does not cut words itself; none where it is no text. */
export const cutWords = (text: unknown): string[] =>
  typeof text === 'string'
    ? (text.match(wordPattern) ?? []).map(fold).filter((word) => word !== '' && word.length <= indexedWordCharsMax)
    : []

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (char) => escapes[char] as string)

/** Marks words in texts: HTML-escaped, with every matching word between the tags; null where no word matches. */
export type Highlighter = (text: string) => string | null

/** Prepares the marking of `words`. */
export function createHighlighter(words: readonly SearchWord[], pre: string, post: string): Highlighter {
  const inAscii = asciiPattern(words)
  return (text) => {
    if (ascii.test(text)) return inAscii ? mark(text, inAscii, () => true, pre, post) : null
    return mark(text, wordPattern, (word) => isSearched(fold(word), words), pre, post)
  }
}

const isSearched = (folded: string, words: readonly SearchWord[]): boolean =>
  words.some((word) => (word.isPrefix ? folded.startsWith(word.folded) : folded === word.folded))

/**
 * The words themselves as a pattern, to be found in texts of ASCII, where folding is lower case and words end at
 * whatever is no letter and no digit; null where none can occur there. Cutting such a text into words and folding each
 * costs ten times as much.
 */
function asciiPattern(words: readonly SearchWord[]): RegExp | null {
  const searched = words.filter(({ folded }) => ascii.test(folded))
  if (searched.length === 0) return null
  const choices = searched.map(({ folded, isPrefix }) => (isPrefix ? `${folded}[a-z0-9]*` : folded))
  return new RegExp(`(?<![a-z0-9])(?:${choices.join('|')})(?![a-z0-9])`, 'gi')
}

function mark(
  text: string,
  pattern: RegExp,
  isWanted: (word: string) => boolean,
  pre: string,
  post: string,
): string | null {
  let marked = ''
  let end = 0
  for (const match of text.matchAll(pattern)) {
    if (!isWanted(match[0])) continue
    marked += `${escapeHtml(text.slice(end, match.index))}${pre}${escapeHtml(match[0])}${post}`
    end = match.index + match[0].length
  }
  return end === 0 ? null : marked + escapeHtml(text.slice(end))
}
