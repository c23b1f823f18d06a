/**
 * A table of notes with full-text search, and a vector for each record. Without access rules only a service key can
 * read them; the search endpoint of the example has one. See README.md.
 */
import { defineConfig } from 'plinth'
import { dimensions } from './embedding.ts'

export default defineConfig({
  databases: {
    shared: {
      tables: {
        notes: {
          schema: {
            title: { type: 'string', required: true, max: 500 },
            text: { type: 'text', required: true },
            kind: { type: 'string', required: true, enum: ['thing', 'food'] },
          },
          search: ['title', 'text'],
        },
      },
    },
  },
  vector: { notes: { dimensions, metric: 'cosine', metadataIndexes: ['kind'] } },
  // Stores what has been imported, so that the next start does not repeat it.
  kv: { imports: { writeInterval: 0 } },
})
