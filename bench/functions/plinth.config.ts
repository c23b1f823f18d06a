/** Configuration of the benchmark of hooks: equal tables with 0, 1 and 3 functions that run before an insert. */
import { defineConfig } from '../../packages/server/src/config/define.ts'

const table = {
  schema: {
    title: { type: 'string', required: true, max: 200 },
    body: { type: 'text' },
    views: { type: 'number', default: 0 },
    slug: { type: 'string' },
  },
  access: { read: true, insert: true, update: true, delete: true },
} as const
const unlimited = { requests: 1_000_000_000, window: '60s' }

export default defineConfig({
  databases: { shared: { tables: { none: table, one: table, three: table } } },
  limits: { writeBytes: '100gb' },
  rateLimits: { db: unlimited, global: unlimited },
})
