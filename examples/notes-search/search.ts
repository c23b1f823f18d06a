/**
 * The search: the server is asked twice at once, for notes with these words and for notes whose vectors are near, and
 * the two lists become one by the places that notes have in them.
 */
import { type Backend, Refusal } from './backend.ts'
import type { Embedding } from './embedding.ts'
import type { Note } from './notes.ts'

export interface Hit extends Note {
  /** Its place in each list, from 1; null where it is not in it. */
  readonly words: number | null
  readonly vectors: number | null
}

export interface Results {
  /** Notes that have all the words, the most relevant first. */
  readonly words: readonly Hit[]
  /** The nearest notes. */
  readonly vectors: readonly Hit[]
  readonly both: readonly Hit[]
}

export type Kind = Note['kind'] | null

/** Of each list; what is further down would change nothing in what is shown. */
const candidates = 50
const shown = 10

/**
 * The usual constant: large enough that a first place in one list does not beat good places in both.
 */
const rankOffset = 60

/**
 * Reciprocal rank fusion: every list gives each of its items 1 / (60 + place), and the sums decide. It needs no scores
 * that can be compared, which those of words and of vectors cannot. Ties keep the order in which ids first appear.
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
      // More words than a search takes: no note has them all.
      if (error instanceof Refusal && error.status === 400) return []
      throw error
    }
  }

  async function findNearest(query: string, kind: Kind): Promise<readonly string[]> {
    const vector = embedding.embed(query)
    // A text without words is near to nothing.
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
    const placeIn = (list: readonly string[], id: string): number | null => list.indexOf(id) + 1 || null
    const hitsOf = (ids: readonly string[]): Hit[] =>
      ids.slice(0, shown).flatMap((id) => {
        const note = known.get(id)
        if (!note) return []
        const { title, text, kind } = note
        return [{ id, title, text, kind, words: placeIn(words, id), vectors: placeIn(vectors, id) }]
      })
    return { both: hitsOf(both), words: hitsOf(words), vectors: hitsOf(vectors) }
  }
}
