/** What the server of the SQL bench serves. */
import { defineConfig } from '../../packages/server/src/config/define.ts'

export default defineConfig({ databases: {}, sql: { bench: {} } })
