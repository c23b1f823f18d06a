/** Configuration of the benchmark of jobs: a table whose changes run a function, and one process that runs it. */
import { defineConfig } from '../../../packages/server/src/config/define.ts'

const unlimited = { requests: 1_000_000_000, window: '60s' }

export default defineConfig({
  databases: { shared: { tables: { orders: { schema: { sentAt: { type: 'number' } } } } } },
  // One process, so that it has every time.
  functions: { hosts: 1 },
  rateLimits: { db: unlimited, global: unlimited, functions: unlimited },
})
