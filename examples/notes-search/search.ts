/**
 * Hybrid search: runs a full-text search and a vector search in parallel, and combines the results by rank.
 */
import { ApiError, type Backend } from './backend.ts'
import type { Embedding } from './embedding.ts'
import type { Note } from './notes.ts'

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

export function createSearch(backend: Backend, embedding: Embedding): Search {
  const notes = '/api/db/shared/tables/notes'

  async function findByWords(query: string, kind: Kind): Promise<readonly Note[]> {
    const filter = kind === null ? '' : `&filter=${encodeURIComponent(JSON.stringify([['kind', '==', kind]]))}`
    try {
      const path = `${notes}/search?q=${encodeURIComponent(query)}&limit=${candidates}${filter}`
      return (await backend.get<{ items: Note[] }>(path)).items
    } catch (error) {
      // The query has more words than a search accepts; no note contains them all.
      if (error instanceof ApiError && error.status === 400) return []
      throw error
    }
  }

  async function findNearest(query: string, kind: Kind): Promise<readonly string[]> {
    const vector = embedding.embed(query)
    // A text without words has no similar notes.
    if (vector.every((value) => value === 0)) return []
    const filter = kind === null ? {} : { filter: { kind } }
    const command = { action: 'search', vector, topK: candidates, ...filter }
    const { matches } = await backend.post<{ matches: { id: string }[] }>('/api/vector/notes', command)
    return matches.map(({ id }) => id)
  }

  async function fetchNotes(ids: readonly string[]): Promise<readonly Note[]> {
    if (ids.length === 0) return []
    const filter = encodeURIComponent(JSON.stringify([['id', 'in', ids]]))
    return (await backend.get<{ items: Note[] }>(`${notes}?filter=${filter}&limit=${ids.length}`)).items
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
