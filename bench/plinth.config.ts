/** Configuration of the benchmarked server: three tables with the same columns and different costs, and buckets. */
import { defineConfig, or } from '../packages/server/src/config/define.ts'

const schema = {
  title: { type: 'string', required: true, max: 200 },
  body: { type: 'text' },
  views: { type: 'number', default: 0 },
  published: { type: 'boolean', default: false },
  authorId: { type: 'string', required: true },
  tags: { type: 'json' },
} as const

const indexes = [{ fields: ['authorId', 'createdAt'] }] as const
const files = { read: true, write: true } as const
const open = { read: true, insert: true, update: true, delete: true } as const

/** Above anything one machine sends in a minute: requests are counted but never refused. */
const unlimited = { requests: 1_000_000_000, window: '60s' }

export default defineConfig({
  databases: {
    shared: {
      tables: {
        /** With full-text search. */
        posts: { schema, indexes, search: ['title', 'body'], access: open },
        /** Without full-text search. */
        notes: { schema, indexes, access: open },
        /** With a read rule that is a different filter for every user. */
        drafts: {
          schema,
          indexes,
          access: {
            read: (auth) => (auth ? or({ published: true }, { authorId: auth.id }) : { published: true }),
            insert: (auth) => auth && { authorId: auth.id },
          },
        },
      },
    },
  },
  kv: { cache: { writeInterval: 0 } },
  storage: {
    buckets: {
      files: { access: files },
      /** Contains as many files as one folder of the other bucket. */
      few: { access: files },
    },
  },
  limits: { writeBytes: 2 ** 40 },
  rateLimits: { db: unlimited, storage: unlimited, auth: unlimited, signin: unlimited, signup: unlimited },
})
