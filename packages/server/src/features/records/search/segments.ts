/**
 * Words of texts for searches with a ranking: as in `words.ts`, but texts of scripts without spaces between words are
 * apart, since they are searched by their parts.
 */
import { searchedCharsMax } from '../../../limits/api.ts'
import { ascii, fold, wordPattern } from './words.ts'

/** A word, or a run of characters of scripts without spaces. */
export interface Segment {
  readonly text: string
  /** Where it is in the text. */
  readonly index: number
  /** As it is compared; never empty. */
  readonly folded: string
  readonly isUnspaced: boolean
}

/** Scripts without spaces between words, and Korean, whose words have particles attached. */
const unspaced = ['Han', 'Hira', 'Kana', 'Bopo', 'Hang', 'Yiii', 'Thai', 'Laoo', 'Khmr', 'Mymr', 'Tibt']
  .map((script) => `\\p{scx=${script}}`)
  .join('')

/** Marks belong to the character before them. */
const segmentPattern = new RegExp(`(?<unspaced>(?:[${unspaced}]\\p{M}*)+)|[^${unspaced}]+`, 'gu')
const hasUnspaced = new RegExp(`[${unspaced}]`, 'u')

/** The segments of the first `searchedCharsMax` characters of a text in order, from an index on. */
export function* segmentsOf(text: string, from = 0): Generator<Segment> {
  const pattern = new RegExp(wordPattern)
  pattern.lastIndex = from
  const searched = text.length <= searchedCharsMax ? text : text.slice(0, searchedCharsMax)
  for (const { 0: word, index } of searched.matchAll(pattern)) {
    if (ascii.test(word) || !hasUnspaced.test(word)) {
      const folded = fold(word)
      if (folded !== '') yield { text: word, index, folded, isUnspaced: false }
      continue
    }
    for (const part of word.matchAll(segmentPattern)) {
      const folded = fold(part[0])
      const isUnspaced = part.groups?.unspaced !== undefined
      if (folded !== '') yield { text: part[0], index: index + part.index, folded, isUnspaced }
    }
  }
}
