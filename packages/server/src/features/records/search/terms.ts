/**
 * The terms of a record in the term index, with their weights: its words, with `substring` the parts of the words, and
 * of texts without spaces the characters and pairs of characters, beside overlapping pieces that are only compared.
 */
import { comparedMark, partMark } from '../../../engines/term-index/term-index.ts'
import { isInDictionary } from '../../../engines/term-index/word-entries.ts'
import {
  dictionaryWordsPerRecordMax,
  indexedWordCharsMax,
  searchedCharsMax,
  searchedRecordCharsMax,
  termsPerRecordMax,
  unspacedPartChars,
  unspacedTermStep,
  wordPartChars,
} from '../../../limits/api.ts'
import type { Ranking, Table } from '../../../query/table.ts'
import { segmentsOf } from './segments.ts'
import { truncate } from './words.ts'

/** A part of a word, as a term: no word contains the mark. */
export const wordPart = (part: string): string => partMark + part

/** All parts of a text with a number of characters, in order. */
export function* partsOf(points: readonly string[], chars: number): Generator<string> {
  for (let at = 0; at + chars <= points.length; at++) yield points.slice(at, at + chars).join('')
}

function* termsOfWord(folded: string, { substring }: Ranking): Generator<string> {
  const term = truncate(folded, indexedWordCharsMax)
  yield term
  if (substring) for (const part of partsOf(Array.from(term), wordPartChars)) yield wordPart(part)
}

function* termsOfUnspaced(folded: string): Generator<string> {
  const points = Array.from(folded)
  for (let at = 0; at === 0 || at + indexedWordCharsMax - unspacedTermStep < points.length; at += unspacedTermStep)
    yield comparedMark + points.slice(at, at + indexedWordCharsMax).join('')
  for (const [at, point] of points.entries()) {
    yield point
    if (at + unspacedPartChars <= points.length) yield points.slice(at, at + unspacedPartChars).join('')
  }
}

/** The searched fields with their weights, the weightiest first. */
export const weightedFields = ({ search }: Table, { weights }: Ranking): readonly (readonly [string, number])[] =>
  search.map((name, at) => [name, weights[at] ?? 1] as const).sort(([, a], [, b]) => b - a)

/**
 * The terms as JSON text: each with the weight of the weightiest field that has it. At most `termsPerRecordMax`, and
 * `dictionaryWordsPerRecordMax` words where searches correct typos: which words are found must not depend on whether
 * other records have added them to the dictionary.
 */
export function createTermsText(table: Table, ranking: Ranking): (record: Readonly<Record<string, unknown>>) => string {
  const fields = weightedFields(table, ranking)
  return (record) => {
    const terms = new RecordTerms(ranking)
    for (const { text, weight } of searchedTexts(record, fields)) terms.add(text, weight)
    return JSON.stringify(Object.fromEntries(terms.weights))
  }
}

/** The searched part of each text of a record, of `searchedRecordCharsMax` characters together. */
export function* searchedTexts(
  record: Readonly<Record<string, unknown>>,
  fields: ReturnType<typeof weightedFields>,
): Generator<{ readonly name: string; readonly text: string; readonly weight: number }> {
  let left = searchedRecordCharsMax
  for (const [name, weight] of fields) {
    const value = record[name]
    if (typeof value !== 'string') continue
    const text = value.slice(0, Math.min(left, searchedCharsMax))
    left -= text.length
    yield { name, text, weight }
  }
}

/** Collects the terms of a record. */
class RecordTerms {
  readonly weights = new Map<string, number>()
  readonly #ranking: Ranking
  #dictionaryWords = 0

  constructor(ranking: Ranking) {
    this.#ranking = ranking
  }

  /** Adds the terms of a text that it does not have yet. */
  add(text: string, weight: number): void {
    for (const { folded, isUnspaced } of segmentsOf(text))
      for (const term of isUnspaced ? termsOfUnspaced(folded) : termsOfWord(folded, this.#ranking)) {
        if (this.weights.size >= termsPerRecordMax) return
        if (!this.weights.has(term) && this.#hasRoomFor(term)) this.weights.set(term, weight)
      }
  }

  #hasRoomFor(term: string): boolean {
    if (!this.#ranking.typos || !isInDictionary(term)) return true
    if (this.#dictionaryWords >= dictionaryWordsPerRecordMax) return false
    this.#dictionaryWords++
    return true
  }
}
