/**
 * Writes `docs/reference/log-events.md` from the catalog of log events:
 *
 *     node scripts/run.mjs scripts/log-events.ts
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { format } from './reference/log-events-page.ts'

writeFileSync(join(import.meta.dir, '../docs/reference/log-events.md'), format())
