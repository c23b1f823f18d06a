/** What a search is, whatever runs it, and the one that runs in this server's memory. */
import type { VectorCondition, VectorIndex } from '../../engines/vectors/vectors.ts'
import { vectorSearchesMax } from '../../limits/resources.ts'
import type { StoredVector, VectorRows, Wanted } from './rows.ts'
import type { StoredIndex } from './tables.ts'

/** A search whose every part has been checked against its index. */
export interface Search {
  readonly vector: Float32Array
  readonly topK: number
  /** Null for vectors of all. */
  readonly namespace: string | null
  /** All of them must hold. */
  readonly conditions: readonly VectorCondition[]
  /** What is read of the matches. */
  readonly wanted: Wanted
}

export interface Match extends StoredVector {
  readonly score: number
}

/** Searches one index. Every change that was acknowledged before is seen. */
export interface Searcher {
  /** Best first. Rejects with `EngineError`. */
  search(search: Search): Promise<readonly Match[]>
  /** To be told of every write, so that the next search need not wait for what it has to learn. Never fails. */
  notice(): void
  close(): void
}

/** Searches a copy in memory, and reads what it finds from SQL. */
export function createMemorySearcher(stored: StoredIndex, rows: VectorRows, index: VectorIndex): Searcher {
  return {
    async search({ wanted, ...query }) {
      for (let searches = 1; ; searches++) {
        const { version } = await rows.state(stored)
        const found = await index.search({ ...query, atLeast: version })
        const keys = found.map(({ key }) => key)
        const vectors = await rows.findByKeys(stored, keys, wanted)
        const matches = found.flatMap(({ key, score }): Match[] => {
          const vector = vectors.get(key)
          // One that was written meanwhile may be elsewhere now, and its score that of another.
          return vector && vector.version <= version ? [{ ...vector, score }] : []
        })
        if (matches.length === found.length || searches === vectorSearchesMax) return matches
      }
    },
    notice: () => index.follow(),
    close: () => index.close(),
  }
}
