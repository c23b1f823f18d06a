import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { sql } from '../../../engines/sql/sql-text.ts'
import {
  dictionaryCharsMax,
  dictionaryCharsMin,
  entriesNear,
  entriesOf,
  firstEntriesOf,
} from '../../../engines/term-index/word-entries.ts'
import { typoCharsMax } from '../../../limits/api.ts'
import { countTypos, typosAllowed } from './typos.ts'

/** The entries that the triggers store. */
function storedEntries(word: string, select = entriesOf): string[] {
  const { text, values } = select(sql`SELECT ${word} AS word`)
  using database = new Database(':memory:')
  return database
    .query<{ entry: string; word: string }, string[]>(text)
    .all(...(values as string[]))
    .map((row) => {
      expect(row.word).toBe(word)
      return row.entry
    })
}

/** Words that are alike, of few letters, one of which takes two UTF-16 units. */
const letter = fc.constantFrom('a', 'b', 'c', '𝒟')
const searched = fc.string({ unit: letter, minLength: 4, maxLength: 16 }).map((word) => [...word])
type Change = readonly [kind: 'add' | 'drop' | 'replace' | 'swap', at: number, letter: string]
const change = fc.tuple(fc.constantFrom('add', 'drop', 'replace', 'swap'), fc.nat(64), letter) as fc.Arbitrary<Change>

function changed(word: readonly string[], [kind, anywhere, by]: Change): string[] {
  const at = 1 + (anywhere % (word.length - 1))
  const [before, after] = [word.slice(0, at), word.slice(at)]
  if (kind === 'add') return [...before, by, ...after]
  if (kind === 'drop') return [...before, ...after.slice(1)]
  if (kind === 'replace') return [...before, by, ...after.slice(1)]
  return [...before, ...after.slice(0, 2).toReversed(), ...after.slice(2)]
}

test('[DB-SEARCH-15] every word within the typos of a searched word has an entry that is looked up', () => {
  fc.assert(
    fc.property(searched, fc.array(change, { minLength: 1, maxLength: 2 }), (points, changes) => {
      const typos = typosAllowed(points.join(''), points.length) as 1 | 2
      let other = points
      for (const one of changes.slice(0, typos)) other = changed(other, one)
      // A letter between those that are swapped is more than two typos.
      if (other.length < dictionaryCharsMin || countTypos(points, other, typos) === null) return
      const looked = entriesNear(points, typos)
      expect(storedEntries(other.join('')).some((entry) => looked.has(entry))).toBe(true)
    }),
    { numRuns: 1500 },
  )
})

test('[DB-SEARCH-23] a searched word is looked up under a bounded number of entries', () => {
  for (let chars = 4; chars <= typoCharsMax; chars++) {
    const points = Array.from({ length: chars }, (_, at) => String.fromCodePoint(0x61 + at))
    const typos = typosAllowed(points.join(''), chars) as 1 | 2
    expect(entriesNear(points, typos).size).toBeLessThanOrEqual(250)
  }
})

test('[DB-SEARCH-23] a word is stored under three entries, or six, of different pieces', () => {
  for (let chars = dictionaryCharsMin; chars <= dictionaryCharsMax; chars++) {
    const word = Array.from({ length: chars }, (_, at) => String.fromCodePoint(0x61 + at)).join('')
    const entries = storedEntries(word)
    expect(new Set(entries).size).toBe(chars <= 5 ? 3 : 6)
    expect(storedEntries(word, firstEntriesOf)).toEqual(entries.slice(0, 1))
  }
})
