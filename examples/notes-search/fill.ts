/** Puts the collection into the server: each note as a record and as a vector, under one id. */
import type { Backend } from './backend.ts'
import { type Embedding, embeddingVersion } from './embedding.ts'
import type { Note } from './notes.ts'

/** SPEC's most for one request; as vectors about a megabyte. */
const batchNotes = 500

/** What a vector is made from. */
export const textOf = ({ title, text }: Pick<Note, 'title' | 'text'>): string => `${title}: ${text}`

/**
 * Does nothing where it was done before, with as many notes and the same embedding; what was interrupted is begun anew,
 * which changes nothing that is there already. Throws `Refusal`.
 */
export async function fill(backend: Backend, notes: readonly Note[], embedding: Embedding): Promise<void> {
  const mark = { notes: notes.length, embedding: embeddingVersion }
  const { value } = await backend.post<{ value: unknown }>('/api/kv/imports', { action: 'get', key: 'notes' })
  if (JSON.stringify(value) === JSON.stringify(mark)) return
  for (let start = 0; start < notes.length; start += batchNotes) {
    const batch = notes.slice(start, start + batchNotes)
    const vectors = batch.map((note) => ({
      id: note.id,
      values: embedding.embed(textOf(note)),
      metadata: { kind: note.kind },
    }))
    await Promise.all([
      backend.post('/api/db/shared/tables/notes/batch?upsert=true', { inserts: batch }),
      backend.post('/api/vector/notes', { action: 'upsert', vectors }),
    ])
  }
  await backend.post('/api/kv/imports', { action: 'set', key: 'notes', value: mark })
}
