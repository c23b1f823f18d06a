/** Configuration of the benchmark of starts: one namespace for all, and one with a database per tenant. */
import { defineConfig } from 'plinth'

const table = {
  schema: { title: { type: 'string', required: true } },
  access: { read: true, insert: true },
} as const

export default defineConfig({
  databases: {
    shared: { tables: { notes: table } },
    workspace: { instance: true, access: () => true, tables: { notes: table } },
  },
})
