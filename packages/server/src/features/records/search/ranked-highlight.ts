/** Highlights the matches of a search with a ranking, typos and parts included. */

import { indexedWordCharsMax, searchedCharsMax } from '../../../limits/api.ts'
import type { Highlighter } from './highlight.ts'
import { matchesWord, type SearchTerm } from './search-terms.ts'
import { type Segment, segmentsOf } from './segments.ts'
import { createSnippet, type Span } from './snippet.ts'
import { fold } from './words.ts'

/** Characters after the end of a snippet that are read too: more than those by which a word is compared. */
const lookahead = 4 * indexedWordCharsMax

/** Compiles a highlighter for the terms of a search. Words are marked as a whole. */
export function createRankedHighlighter(terms: readonly SearchTerm[], pre: string, post: string): Highlighter {
  return (text, searchedChars = searchedCharsMax) => {
    const searched = text.length > searchedChars ? text.slice(0, searchedChars) : text
    const [first] = spansFrom(searched, 0, terms)
    if (!first) return null
    const spansTo = (end: number) => spansBetween(searched.slice(0, end + lookahead), first, end, terms)
    return createSnippet(text, first.start, spansTo, [pre, post])
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

/** The start of a character, which its marks follow. */
const clusterStart = /\P{M}/gu

/** Every occurrence of the searched texts in a segment, merged where they overlap or touch. */
function* spansIn(segment: Segment, terms: readonly SearchTerm[]): Generator<Span> {
  const { text, index, folded } = segment
  const positions = new FoldedPositions(text, folded)
  for (const [from, to] of occurrences(folded, terms)) {
    const [start, end] = [positions.before(from), positions.after(to)]
    // Where letters compose across characters, positions are unknown: the segment is marked as a whole.
    if (start === null || end === null) {
      yield { start: index, end: index + text.length }
      return
    }
    yield { start: index + start, end: index + end }
  }
}

/**
 * The positions of a folded text in the text itself. They are read in order: from the last one, doubled steps and then
 * halves lead to the next, so that each character before it is folded about twice.
 */
class FoldedPositions {
  readonly #text: string
  readonly #folded: string
  /** The start of a character, and its place. */
  #at = 0
  #place = 0

  constructor(text: string, folded: string) {
    this.#text = text
    this.#folded = folded
  }

  /** The start of the character that has the place; null if it is unknown. */
  before(place: number): number | null {
    let end = this.#text.length
    for (let step = 16; this.#at + step < end; step *= 2) {
      const next = this.#nextStart(this.#at + step)
      if (next >= end) break
      const isBefore = this.#advance(next, place)
      if (isBefore === null) return null
      if (!isBefore) end = next
    }
    for (;;) {
      let middle = this.#nextStart((this.#at + end) >> 1)
      if (middle >= end || middle === this.#at) middle = this.#nextStart(this.#at + 1)
      if (middle >= end) return this.#at
      const isBefore = this.#advance(middle, place)
      if (isBefore === null) return null
      if (!isBefore) end = middle
    }
  }

  /** The end of the character before the place; null if it is unknown. */
  after(place: number): number | null {
    const start = this.before(place - 1)
    return start === null ? null : this.#nextStart(start + 1)
  }

  /** Goes on to the start of a character unless it is after the place. Returns whether it did; null if unknown. */
  #advance(start: number, place: number): boolean | null {
    const between = fold(this.#text.slice(this.#at, start))
    if (!this.#folded.startsWith(between, this.#place)) return null
    if (this.#place + between.length > place) return false
    this.#at = start
    this.#place += between.length
    return true
  }

  /** The start of the first character at an index or after it. */
  #nextStart(index: number): number {
    const isInPair =
      /[\uDC00-\uDFFF]/.test(this.#text[index] ?? '') && /[\uD800-\uDBFF]/.test(this.#text[index - 1] ?? '')
    clusterStart.lastIndex = isInPair ? index + 1 : index
    return clusterStart.exec(this.#text)?.index ?? this.#text.length
  }
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
