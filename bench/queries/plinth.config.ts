/** Configuration of the server of the query benchmark: posts with authors and comments, orders to sum, and places. */
import { defineConfig } from '../../packages/server/src/config/define.ts'

const access = { read: true, insert: true } as const
const unlimited = { requests: 1_000_000_000, window: '60s' }

export default defineConfig({
  databases: {
    shared: {
      tables: {
        authors: { schema: { name: { type: 'string', required: true }, bio: { type: 'text' } }, access },
        posts: {
          schema: {
            title: { type: 'string', required: true },
            body: { type: 'text' },
            topic: { type: 'string', required: true },
            rank: { type: 'number', required: true },
            authorId: { type: 'string', required: true, references: 'authors' },
          },
          indexes: [{ fields: ['topic', 'rank'] }],
          access,
        },
        comments: {
          schema: {
            text: { type: 'text', required: true },
            rank: { type: 'number', required: true },
            postId: { type: 'string', required: true, references: 'posts' },
          },
          indexes: [{ fields: ['postId', 'rank'] }],
          access,
        },
        places: {
          schema: { name: { type: 'string', required: true }, position: { type: 'geo', required: true, index: true } },
          search: ['name'],
          searchOptions: { typos: true },
          access,
        },
        orders: {
          schema: {
            status: { type: 'string', required: true },
            amount: { type: 'number', required: true },
            buyerId: { type: 'string', required: true },
            orderedAt: { type: 'datetime', required: true },
          },
          access,
        },
      },
    },
  },
  rateLimits: { db: unlimited, global: unlimited },
})
