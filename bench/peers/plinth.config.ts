/** Configuration of the server beside its peers: one table whose rule is a different filter for every user. */
import { defineConfig, or } from '../../packages/server/src/config/define.ts'

/** Above anything one machine sends in a minute: requests are counted but never refused. */
const unlimited = { requests: 1_000_000_000, window: '60s' }

export default defineConfig({
  databases: {
    shared: {
      tables: {
        posts: {
          schema: {
            title: { type: 'string', required: true, max: 200 },
            body: { type: 'text' },
            views: { type: 'number', default: 0 },
            published: { type: 'boolean', default: false },
            author: { type: 'string', required: true },
          },
          indexes: [{ fields: ['author', 'createdAt'] }],
          access: {
            read: (auth) => (auth ? or({ published: true }, { author: auth.id }) : { published: true }),
            insert: (auth) => auth && { author: auth.id },
            update: (auth) => auth && { author: auth.id },
          },
        },
      },
    },
  },
  limits: { writeBytes: 2 ** 40 },
  rateLimits: { db: unlimited, auth: unlimited, signin: unlimited, signup: unlimited },
})
