/** Highlights the matches of a search with a ranking, typos and parts included. */
import type { Highlighter } from './highlight.ts'
import { matchesWord, type SearchTerm } from './search-terms.ts'
import { type Segment, segmentsOf } from './segments.ts'
import { createSnippet, type Span } from './snippet.ts'
import { fold } from './words.ts'

/** Compiles a highlighter for the terms of a search. Words are marked as a whole. */
export function createRankedHighlighter(terms: readonly SearchTerm[], pre: string, post: string): Highlighter {
  return (text) => {
    const [first] = spansFrom(text, 0, terms)
    if (!first) return null
    return createSnippet(text, first.start, (end) => spansBetween(text, first, end, terms), [pre, post])
  }
}

function* spansFrom(text: string, from: number, terms: readonly SearchTerm[], end = text.length): Generator<Span> {
  for (const segment of segmentsOf(text, from)) {
    if (segment.index >= end) return
    yield* segment.isUnspaced ? spansIn(segment, terms) : wordSpan(segment, terms)
  }
}

/** The first match, and those after it that start before `end`. */
function* spansBetween(text: string, first: Span, end: number, terms: readonly SearchTerm[]): Generator<Span> {
  yield first
  for (const span of spansFrom(text, first.end, terms, end)) yield span
}

function wordSpan({ text, index, folded }: Segment, terms: readonly SearchTerm[]): Span[] {
  const isMatch = terms.some((term) => term.kind === 'word' && matchesWord(term, folded))
  return isMatch ? [{ start: index, end: index + text.length }] : []
}

/** A character with its marks. */
const clusterPattern = /\P{M}\p{M}*|\p{M}+/gu

/** Every occurrence of the searched texts in a segment, merged where they overlap or touch. */
function spansIn(segment: Segment, terms: readonly SearchTerm[]): Span[] {
  const { text, index, folded } = segment
  const starts: number[] = []
  let built = ''
  for (const { 0: cluster, index: at } of text.matchAll(clusterPattern)) {
    const part = fold(cluster)
    for (let unit = 0; unit < part.length; unit++) starts.push(at)
    built += part
  }
  starts.push(text.length)
  const found = occurrences(folded, terms)
  // Where letters compose across characters, positions are unknown: the segment is marked as a whole.
  if (built !== folded) return found.length > 0 ? [{ start: index, end: index + text.length }] : []
  return found.map(([from, to]) => ({ start: index + (starts[from] ?? 0), end: index + endOf(starts, to) }))
}

/** The end of the cluster before a folded position. */
function endOf(starts: readonly number[], to: number): number {
  const last = starts[to - 1] ?? 0
  let at = to
  while (at < starts.length - 1 && starts[at] === last) at++
  return starts[at] ?? 0
}

function occurrences(folded: string, terms: readonly SearchTerm[]): [from: number, to: number][] {
  const found: [number, number][] = []
  for (const term of terms)
    if (term.kind === 'unspaced')
      for (let at = folded.indexOf(term.folded); at >= 0; at = folded.indexOf(term.folded, at + 1))
        found.push([at, at + term.folded.length])
  found.sort(([a], [b]) => a - b)
  const merged: [number, number][] = []
  for (const [from, to] of found) {
    const last = merged.at(-1)
    if (last && from <= last[1]) last[1] = Math.max(last[1], to)
    else merged.push([from, to])
  }
  return merged
}
