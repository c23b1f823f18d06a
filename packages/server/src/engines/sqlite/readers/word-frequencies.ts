/** Which words of full-text searches are frequent in a file. */
import { createLru } from '../../../base/concurrency/lru.ts'
import { wordFrequenciesMax, wordFrequencyMs } from '../../../limits/sqlite.ts'
import type { WordFrequency } from '../../sql/dialect.ts'
import type { Connection } from '../connection.ts'

export interface WordFrequencies {
  /** Whether one of the words of a search occurs often. */
  isFrequent(words: WordFrequency, nowMs: number): boolean
}

/**
 * Counting takes longer than finding a rare word, so the result is reused for `wordFrequencyMs`: a word does not become
 * frequent in a moment.
 */
export function createWordFrequencies(connection: Connection): WordFrequencies {
  /** Term tables (`fts5vocab`) that this connection has. */
  const listed = new Set<string>()
  const known = createLru<string, { readonly isFrequent: boolean; readonly countedAtMs: number }>(wordFrequenciesMax)

  return {
    isFrequent({ source, create, query }, nowMs) {
      const words = `${source} ${query.values.join(' ')}`
      const counted = known.get(words)
      if (counted && nowMs - counted.countedAtMs < wordFrequencyMs) return counted.isFrequent
      if (!listed.has(source)) {
        connection.run(create)
        listed.add(source)
      }
      const isFrequent = connection.all(query).length > 0
      known.set(words, { isFrequent, countedAtMs: nowMs })
      return isFrequent
    },
  }
}
