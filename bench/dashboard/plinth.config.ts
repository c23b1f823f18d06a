/** Configuration of the dashboard's benchmark: a table of 200 columns, and one of as many as a table may have. */
import { defineConfig } from '../../packages/server/src/config/define.ts'
import { tableFieldsMax } from '../../packages/server/src/limits/api.ts'

const access = { read: true, insert: true } as const
const unlimited = { requests: 1_000_000_000, window: '60s' }
const columns = (count: number) =>
  Object.fromEntries(
    Array.from({ length: count }, (_, at) => [`c${String(at).padStart(3, '0')}`, { type: 'string' as const }]),
  )

export default defineConfig({
  databases: {
    shared: {
      tables: {
        long: {
          schema: { ...columns(196), rank: { type: 'number' }, text: { type: 'text' }, data: { type: 'json' } },
          indexes: [{ fields: ['rank'] }],
          access,
        },
        wide: { schema: columns(tableFieldsMax), access },
      },
    },
  },
  dashboard: { requireMfa: false },
  rateLimits: { global: unlimited, db: unlimited, auth: unlimited, signin: unlimited },
})
