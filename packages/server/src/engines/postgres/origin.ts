/**
 * Identifies the PostgreSQL cluster of a database: its system identifier, and the timeline, which changes with a
 * fail-over and a point-in-time restore. A restricted role or a managed service may deny either.
 */

import type { Database } from '../sql/sql.ts'
import { type SqlText, sql } from '../sql/sql-text.ts'
import { sqlStateOf } from './errors.ts'

const parts: readonly SqlText[] = [
  sql`SELECT system_identifier::text AS part FROM pg_control_system()`,
  sql`SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8) AS part`,
]

/** Insufficient privilege (42501), undefined function (42883), not supported by a managed service (0A000). */
const refused: readonly string[] = ['42501', '42883', '0A000']

async function readPart(database: Pick<Database, 'all'>, part: SqlText): Promise<string> {
  try {
    const [row] = await database.all<{ part: string }>(part)
    return row?.part ?? ''
  } catch (error) {
    // Function privileges are checked before a statement runs, so no condition within it can avoid the error.
    if (refused.includes(sqlStateOf(error) ?? '')) return ''
    throw error
  }
}

/** The parts the role may read; a denied part is empty. Rejects with `EngineError`. */
export async function readOrigin(database: Pick<Database, 'all'>): Promise<string> {
  return (await Promise.all(parts.map((part) => readPart(database, part)))).join(' ')
}
