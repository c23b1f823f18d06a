/**
 * Hybrid search: runs a full-text search and a vector search in parallel, and combines the results by rank.
 */
import { isPlinthError } from 'plinth-client'
import type { Embedding } from './embedding.ts'
import type { Note } from './notes.ts'
import type { Plinth } from './plinth.ts'

export interface Hit extends Note {
  /** The rank in each list, from 1; null if it is not in the list. */
  readonly words: number | null
  readonly vectors: number | null
}

export interface Results {
  /** Notes that contain all words, most relevant first. */
  readonly words: readonly Hit[]
  /** Notes with the most similar vectors. */
  readonly vectors: readonly Hit[]
  /** The combined results. */
  readonly both: readonly Hit[]
}

export type Kind = Note['kind'] | null

/** Results requested per list; lower ranks would not affect the results shown. */
const candidates = 50
const shown = 10

/** The customary constant: with it, the first rank in one list does not beat good ranks in both. */
const rankOffset = 60

/**
 * Reciprocal rank fusion: each list contributes 1 / (60 + rank) to each of its items, which are sorted by the sum. It
 * does not compare the scores of the lists. Ties keep the order of first appearance.
 */
export function fuse(lists: readonly (readonly string[])[]): string[] {
  const scores = new Map<string, number>()
  for (const list of lists)
    for (const [at, id] of list.entries()) scores.set(id, (scores.get(id) ?? 0) + 1 / (rankOffset + at + 1))
  return [...scores].sort(([, one], [, other]) => other - one).map(([id]) => id)
}

export type Search = (query: string, kind: Kind) => Promise<Results>

export function createSearch(plinth: Plinth, embedding: Embedding): Search {
  const { notes } = plinth.db()

  async function findByWords(query: string, kind: Kind): Promise<readonly Note[]> {
    const ofKind = kind === null ? notes : notes.where('kind', '==', kind)
    try {
      return (await ofKind.limit(candidates).search(query)).items
    } catch (error) {
      // The query has more words than a search accepts; no note contains them all.
      if (isPlinthError(error) && error.status === 400) return []
      throw error
    }
  }

  async function findNearest(query: string, kind: Kind): Promise<readonly string[]> {
    const vector = embedding.embed(query)
    // A text without words has no similar notes.
    if (vector.every((value) => value === 0)) return []
    const filter = kind === null ? {} : { filter: { kind } }
    const body = { action: 'search', vector, topK: candidates, ...filter }
    const { matches } = await plinth.request<{ matches: { id: string }[] }>('POST', '/api/vector/notes', { body })
    return matches.map(({ id }) => id)
  }

  async function fetchNotes(ids: readonly string[]): Promise<readonly Note[]> {
    if (ids.length === 0) return []
    return (await notes.where('id', 'in', ids).limit(ids.length).list()).items
  }

  return async (query, kind) => {
    const [found, vectors] = await Promise.all([findByWords(query, kind), findNearest(query, kind)])
    const words = found.map(({ id }) => id)
    const known = new Map(found.map((note) => [note.id, note]))
    const both = fuse([words, vectors])
    const missing = [...both, ...vectors].filter((id) => !known.has(id))
    for (const note of await fetchNotes([...new Set(missing)])) known.set(note.id, note)
    const rankIn = (list: readonly string[], id: string): number | null => list.indexOf(id) + 1 || null
    const hitsOf = (ids: readonly string[]): Hit[] =>
      ids.slice(0, shown).flatMap((id) => {
        const note = known.get(id)
        if (!note) return []
        const { title, text, kind } = note
        return [{ id, title, text, kind, words: rankIn(words, id), vectors: rankIn(vectors, id) }]
      })
    return { both: hitsOf(both), words: hitsOf(words), vectors: hitsOf(vectors) }
  }
}
