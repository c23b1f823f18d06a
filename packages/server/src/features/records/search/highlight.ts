/** Highlights the words of a search that the engine's full-text index answers. */
import { indexedWordCharsMax } from '../../../limits/api.ts'
import { createSnippet, type Span } from './snippet.ts'
import { ascii, fold, type SearchWord, wordPattern } from './words.ts'

/**
 * Highlights words in a text. Returns an HTML-escaped snippet with matching words between the tags, or null if no word
 * matches. A snippet has at most `snippetMarksMax` highlights and `snippetCharsMax` characters of the text; `…` marks
 * omitted text. Of a table with a ranking, matches are looked for in the first `searchedChars` characters.
 */
export type Highlighter = (text: string, searchedChars?: number) => string | null

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

function mark(
  text: string,
  pattern: RegExp,
  isWanted: (word: string) => boolean,
  pre: string,
  post: string,
): string | null {
  const first = findFirst(text, pattern, isWanted)
  if (first === null) return null
  function* spansTo(end: number): Iterable<Span> {
    for (const { index, 0: word } of matchesFrom(text.slice(0, end + indexedWordCharsMax), pattern, first ?? 0))
      if (isWanted(word)) yield { start: index, end: index + word.length }
  }
  return createSnippet(text, first, spansTo, [pre, post])
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
