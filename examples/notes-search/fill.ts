/** Imports the collection: each note becomes a record and a vector with the same id. */
import type { Backend } from './backend.ts'
import { type Embedding, embeddingVersion } from './embedding.ts'
import type { Note } from './notes.ts'

/** Maximum operations per batch (rule DB-BATCH-2); the vectors take about a megabyte. */
const batchNotes = 500

/** The text that is embedded. */
export const textOf = ({ title, text }: Pick<Note, 'title' | 'text'>): string => `${title}: ${text}`

/**
 * Imports the notes unless they have been imported with the same embedding version. An interrupted import is repeated,
 * which is idempotent. Throws `ApiError`.
 */
export async function fill(backend: Backend, notes: readonly Note[], embedding: Embedding): Promise<void> {
  const done = { notes: notes.length, embedding: embeddingVersion }
  const { value } = await backend.post<{ value: unknown }>('/api/kv/imports', { action: 'get', key: 'notes' })
  if (JSON.stringify(value) === JSON.stringify(done)) return
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
  await backend.post('/api/kv/imports', { action: 'set', key: 'notes', value: done })
}
