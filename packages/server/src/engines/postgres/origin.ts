/**
 * Names the cluster that a PostgreSQL database is part of: its system identifier, and the timeline, which changes with
 * a fail-over and a restore to a point in time. A restricted role or a managed service may refuse either.
 */

import type { Database } from '../sql/sql.ts'
import { type SqlText, sql } from '../sql/sql-text.ts'
import { sqlStateOf } from './errors.ts'

const parts: readonly SqlText[] = [
  sql`SELECT system_identifier::text AS part FROM pg_control_system()`,
  sql`SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8) AS part`,
]

/** Not allowed (42501), not there (42883), not supported by a managed service (0A000). */
const refused: readonly string[] = ['42501', '42883', '0A000']

async function readPart(database: Pick<Database, 'all'>, part: SqlText): Promise<string> {
  try {
    const [row] = await database.all<{ part: string }>(part)
    return row?.part ?? ''
  } catch (error) {
    // Privileges of functions are checked before a statement runs, so that no condition within it can avoid this.
    if (refused.includes(sqlStateOf(error) ?? '')) return ''
    throw error
  }
}

/** What the role may read of it; a part that is refused is empty. Rejects with `EngineError`. */
export async function readOrigin(database: Pick<Database, 'all'>): Promise<string> {
  return (await Promise.all(parts.map((part) => readPart(database, part)))).join(' ')
}
