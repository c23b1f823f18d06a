/**
 * Snippets: the part of a text around its first match, escaped for HTML, with the matches between tags. A snippet has
 * at most `snippetMarksMax` matches and `snippetCharsMax` characters of the text; `…` marks omitted text.
 */
import { escapeHtml } from '../../../base/text/html.ts'
import { snippetCharsMax, snippetLeadChars, snippetMarksMax } from '../../../limits/api.ts'

/** A match in a text. */
export interface Span {
  readonly start: number
  readonly end: number
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

/** `spansTo` returns the matches from `first` on, in order, at least those that start before `end`. */
export function createSnippet(
  text: string,
  first: number,
  spansTo: (end: number) => Iterable<Span>,
  [pre, post]: readonly [pre: string, post: string],
): string {
  const [start, end] = windowAround(text, first)
  let marked = start > 0 ? '…' : ''
  let marks = 0
  let at = start
  for (const span of spansTo(end)) {
    if (span.start >= end || marks === snippetMarksMax) break
    // Highlight the visible part of a match at the end.
    const spanEnd = Math.min(span.end, end)
    marked += `${escapeHtml(text.slice(at, span.start))}${pre}${escapeHtml(text.slice(span.start, spanEnd))}${post}`
    at = spanEnd
    marks += 1
  }
  return `${marked}${escapeHtml(text.slice(at, end))}${end < text.length ? '…' : ''}`
}
