/**
 * Search text: cutting the caller's words, and marking where they stand in a field. Words are runs of letters, digits
 * and private-use characters, compared without case and diacritics, as the engines' full-text indexes do.
 */

import { escapeHtml } from '../../../base/text/html.ts'
import { codePointLength, isStorableText } from '../../../base/text/text.ts'
import { badRequest } from '../../../errors.ts'
import {
  searchTextCharsMax,
  searchWordsMax,
  snippetCharsMax,
  snippetLeadChars,
  snippetMarksMax,
} from '../../../limits/api.ts'

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

/**
 * Code points of a word that count, since lexemes of some engines are bounded: of a longer word, in a record or in a
 * search, only the beginning is compared.
 */
const indexedWordCharsMax = 255

const cut = (text: string, chars: number): string =>
  text.length <= chars ? text : Array.from(text).slice(0, chars).join('')

/** The beginning of a word, as typed, that has so many code points once it is folded. */
function cutTyped(word: string, chars: number): string {
  const points = Array.from(word)
  let [enough, tooFew] = [points.length, 0]
  while (enough - tooFew > 1) {
    const middle = (enough + tooFew) >> 1
    if (codePointLength(fold(points.slice(0, middle).join(''))) >= chars) enough = middle
    else tooFew = middle
  }
  return points.slice(0, enough).join('')
}

/** A word that reaches the bound is searched as a beginning: what follows in the records does not count. */
function parseWord(word: string, isLast: boolean): SearchWord {
  const folded = fold(word)
  if (codePointLength(folded) < indexedWordCharsMax) return { text: word, folded, isPrefix: isLast }
  const text = cutTyped(word, indexedWordCharsMax)
  return { text, folded: cut(folded, indexedWordCharsMax), isPrefix: true }
}

/** The words of a search text; possibly none. Throws 400 when there are too many. */
export function parseSearchWords(text: string): SearchWord[] {
  if (text.length > searchTextCharsMax) throw badRequest(`q: at most ${searchTextCharsMax} characters are allowed`)
  if (!isStorableText(text)) throw badRequest('q: must be text without NUL or broken characters')
  const words = (text.match(wordPattern) ?? []).filter((word) => fold(word) !== '')
  if (words.length > searchWordsMax) throw badRequest(`q: at most ${searchWordsMax} words are allowed`)
  return words.map((word, i) => parseWord(word, i === words.length - 1))
}

/** The folded words of a text, for engines whose index does not cut words itself; none where it is no text. */
export const cutWords = (text: unknown): string[] =>
  typeof text === 'string'
    ? (text.match(wordPattern) ?? []).map((word) => cut(fold(word), indexedWordCharsMax)).filter((word) => word !== '')
    : []

/**
 * Marks words in texts: a snippet, HTML-escaped, with matching words between the tags; null where no word matches. A
 * snippet has at most `snippetMarksMax` marks and `snippetCharsMax` characters of the text; `…` stands where it was
 * cut.
 */
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

/** Before the cut at `at`, or behind it, never inside a character of two units. */
const isInsideCharacter = (text: string, at: number): boolean =>
  at > 0 && /[\uD800-\uDBFF]/.test(text[at - 1] ?? '') && /[\uDC00-\uDFFF]/.test(text[at] ?? '')

/** The part of a text that a snippet shows: all of a short one, else what stands around the first match. */
function windowAround(text: string, first: number): readonly [number, number] {
  if (text.length <= snippetCharsMax) return [0, text.length]
  let start = Math.max(0, Math.min(first - snippetLeadChars, text.length - snippetCharsMax))
  // Begins with a word where one begins soon.
  const space = start === 0 ? -1 : text.slice(start, first).search(/\s/)
  if (space >= 0) start += space + 1
  if (isInsideCharacter(text, start)) start += 1
  const end = Math.min(text.length, start + snippetCharsMax)
  return [start, isInsideCharacter(text, end) ? end - 1 : end]
}

function mark(
  text: string,
  pattern: RegExp,
  isWanted: (word: string) => boolean,
  pre: string,
  post: string,
): string | null {
  const first = findFirst(text, pattern, isWanted)
  if (first === null) return null
  const [start, end] = windowAround(text, first)
  let marked = start > 0 ? '…' : ''
  let marks = 0
  let at = start
  for (const { index, 0: word } of matchesFrom(text.slice(0, end + indexedWordCharsMax), pattern, first)) {
    if (index >= end || marks === snippetMarksMax) break
    if (!isWanted(word)) continue
    // A word at the end is marked as far as it is shown.
    const wordEnd = Math.min(index + word.length, end)
    marked += `${escapeHtml(text.slice(at, index))}${pre}${escapeHtml(text.slice(index, wordEnd))}${post}`
    at = wordEnd
    marks += 1
  }
  return `${marked}${escapeHtml(text.slice(at, end))}${end < text.length ? '…' : ''}`
}

function findFirst(text: string, pattern: RegExp, isWanted: (word: string) => boolean): number | null {
  for (const { index, 0: word } of text.matchAll(pattern)) if (isWanted(word)) return index
  return null
}

/** Matches from an index on, each with what stands before it in the text. */
function matchesFrom(text: string, pattern: RegExp, index: number): Iterable<RegExpExecArray> {
  pattern.lastIndex = index
  const matches = text.matchAll(pattern)
  pattern.lastIndex = 0
  return matches
}
