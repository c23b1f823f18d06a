/** The interface of searches, and the implementation over in-memory copies. */
import type { VectorCondition, VectorIndex } from '../../engines/vectors/vectors.ts'
import { vectorSearchesMax } from '../../limits/resources.ts'
import type { StoredIndex } from './migrations.ts'
import type { StoredVector, VectorRows, Wanted } from './rows.ts'

/** A search, validated against its index. */
export interface Search {
  readonly vector: Float32Array
  readonly topK: number
  /** Null for all namespaces. */
  readonly namespace: string | null
  /** Combined with AND. */
  readonly conditions: readonly VectorCondition[]
  /** Optional parts of the matches to read. */
  readonly wanted: Wanted
}

export interface Match extends StoredVector {
  readonly score: number
}

/** Searches one index. Results reflect every change that was acknowledged before the search. */
export interface Searcher {
  /** Best match first. Rejects with `EngineError`. */
  search(search: Search): Promise<readonly Match[]>
  /** Called after every write, so that copies catch up before the next search. Never fails. */
  notice(): void
  close(): void
}

/** Searches an in-memory copy and reads the matches from SQL. */
export function openMemorySearcher(stored: StoredIndex, rows: VectorRows, index: VectorIndex): Searcher {
  return {
    async search({ wanted, ...query }) {
      for (let searches = 1; ; searches++) {
        const { version } = await rows.state(stored)
        const found = await index.search({ ...query, atLeast: version })
        const keys = found.map(({ key }) => key)
        const vectors = await rows.findByKeys(stored, keys, wanted)
        const matches = found.flatMap(({ key, score }): Match[] => {
          const vector = vectors.get(key)
          // A vector written meanwhile may have moved, and its score is outdated.
          return vector && vector.version <= version ? [{ ...vector, score }] : []
        })
        if (matches.length === found.length || searches === vectorSearchesMax) return matches
      }
    },
    notice: () => index.follow(),
    close: () => index.close(),
  }
}
