/** Imports the collection: each note becomes a record and a vector with the same id. */
import { type Embedding, embeddingVersion } from './embedding.ts'
import type { Note } from './notes.ts'
import type { Plinth } from './plinth.ts'

/** Maximum operations per batch (rule DB-BATCH-2); the vectors take about a megabyte. */
const batchNotes = 500

/** The text that is embedded. */
export const textOf = ({ title, text }: Pick<Note, 'title' | 'text'>): string => `${title}: ${text}`

/**
 * Imports the notes unless they have been imported with the same embedding version. An interrupted import is repeated,
 * which is idempotent. Throws `PlinthError`.
 */
export async function fill(plinth: Plinth, notes: readonly Note[], embedding: Embedding): Promise<void> {
  const done = { notes: notes.length, embedding: embeddingVersion }
  const kv = (body: object) => plinth.request<{ value?: unknown }>('POST', '/api/kv/imports', { body })
  const { value } = await kv({ action: 'get', key: 'notes' })
  if (JSON.stringify(value) === JSON.stringify(done)) return
  for (let start = 0; start < notes.length; start += batchNotes) {
    const batch = notes.slice(start, start + batchNotes)
    const vectors = batch.map((note) => ({
      id: note.id,
      values: embedding.embed(textOf(note)),
      metadata: { kind: note.kind },
    }))
    await Promise.all([
      plinth.db().batch(({ notes }) => {
        for (const note of batch) notes.upsert(note)
      }),
      plinth.request('POST', '/api/vector/notes', { body: { action: 'upsert', vectors } }),
    ])
  }
  await kv({ action: 'set', key: 'notes', value: done })
}
