/**
 * Tokenizes search text and highlights matches in fields. Words are runs of letters, digits and private-use characters,
 * compared without case and diacritics, as in the engines' full-text indexes.
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

/** Lower case without diacritics, recomposed, since Hangul syllables decompose into letters that are not marks. */
const fold = (word: string): string =>
  ascii.test(word) ? word.toLowerCase() : word.toLowerCase().normalize('NFD').replace(marks, '').normalize('NFC')

export interface SearchWord {
  /** As typed: the engine's index folds it itself. */
  readonly text: string
  readonly folded: string
  /** The last word matches as a prefix, since the user may still be typing it. */
  readonly isPrefix: boolean
}

/** Code points of a word that are compared, in records and in searches: engines bound the length of lexemes. */
const indexedWordCharsMax = 255

const truncate = (text: string, chars: number): string =>
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

/** The words of a search text, possibly none. Throws 400 if there are too many. */
export function parseSearchWords(text: string): SearchWord[] {
  if (text.length > searchTextCharsMax) throw badRequest(`q: at most ${searchTextCharsMax} characters are allowed`)
  if (!isStorableText(text)) throw badRequest('q: must be text without NUL or unpaired surrogates')
  const words = (text.match(wordPattern) ?? []).filter((word) => fold(word) !== '')
  if (words.length > searchWordsMax) throw badRequest(`q: at most ${searchWordsMax} words are allowed`)
  return words.map((word, i) => parseWord(word, i === words.length - 1))
}

/** The folded words of a text, for engines whose index does not tokenize; none if it is not text. */
export const tokenize = (text: unknown): string[] =>
  typeof text === 'string'
    ? (text.match(wordPattern) ?? [])
        .map((word) => truncate(fold(word), indexedWordCharsMax))
        .filter((word) => word !== '')
    : []

/**
 * Highlights words in a text. Returns an HTML-escaped snippet with matching words between the tags, or null if no word
 * matches. A snippet has at most `snippetMarksMax` highlights and `snippetCharsMax` characters of the text; `…` marks
 * omitted text.
 */
export type Highlighter = (text: string) => string | null

/** Compiles a highlighter for `words`. */
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
 * A pattern that finds the words in ASCII text, where folding is lower-casing and words end at any character that is
 * not a letter or digit; null if no word can occur in such text. Tokenizing and folding is ten times as slow.
 */
function asciiPattern(words: readonly SearchWord[]): RegExp | null {
  const searched = words.filter(({ folded }) => ascii.test(folded))
  if (searched.length === 0) return null
  const choices = searched.map(({ folded, isPrefix }) => (isPrefix ? `${folded}[a-z0-9]*` : folded))
  return new RegExp(`(?<![a-z0-9])(?:${choices.join('|')})(?![a-z0-9])`, 'gi')
}

/** Whether a cut at `at` would split a surrogate pair. */
const splitsSurrogatePair = (text: string, at: number): boolean =>
  at > 0 && /[\uD800-\uDBFF]/.test(text[at - 1] ?? '') && /[\uDC00-\uDFFF]/.test(text[at] ?? '')

/** The range of a text that a snippet shows: all of a short text, else the part around the first match. */
function windowAround(text: string, first: number): readonly [number, number] {
  if (text.length <= snippetCharsMax) return [0, text.length]
  let start = Math.max(0, Math.min(first - snippetLeadChars, text.length - snippetCharsMax))
  // Start at a word boundary if there is one before the match.
  const space = start === 0 ? -1 : text.slice(start, first).search(/\s/)
  if (space >= 0) start += space + 1
  if (splitsSurrogatePair(text, start)) start += 1
  const end = Math.min(text.length, start + snippetCharsMax)
  return [start, splitsSurrogatePair(text, end) ? end - 1 : end]
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
    // Highlight the visible part of a word at the end.
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

/** Matches from an index on; lookbehinds see the text before it. */
function matchesFrom(text: string, pattern: RegExp, index: number): Iterable<RegExpExecArray> {
  pattern.lastIndex = index
  const matches = text.matchAll(pattern)
  pattern.lastIndex = 0
  return matches
}
