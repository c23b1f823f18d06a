/**
 * Notes that are found by their words and by their meaning: a table with full-text search, and a vector for each of its
 * records. Without rules only a service key gets at them, which the example's own search endpoint has: README.md.
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
  // What the import has done, so that the next start need not do it again.
  kv: { imports: { writeInterval: 0 } },
})
