/**
 * Tables of the dashboard, in the database of the namespace `shared`, so that the transaction that ends the sessions of
 * a user also ends those in the dashboard.
 */

import type { Dialect } from '../../engines/sql/dialect.ts'
import { type PlatformStep, platformTable, preparePlatformTables } from '../../engines/sql/platform-tables.ts'
import type { Database, DatabaseAddress } from '../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../engines/sql/sql-text.ts'

const namespace = 'shared'
export const dashboardAddress: DatabaseAddress = { namespace, instanceId: null }

export type DashboardTable = 'sessions'

export const dashboardTable = (dialect: Dialect, name: DashboardTable): SqlText =>
  dialect.target(platformTable(namespace, `_dashboard_${name}`))

/** Times are milliseconds since 1970. */
const steps: readonly PlatformStep[] = [
  (dialect) => {
    const text: SqlText = { text: dialect.columnTypes.text, values: [] }
    const sessions = dashboardTable(dialect, 'sessions')
    return [
      sql`CREATE TABLE ${sessions} (id ${text} PRIMARY KEY, token_hash ${text} NOT NULL UNIQUE, user_id ${text} NOT NULL,
        created_at BIGINT NOT NULL, used_at BIGINT NOT NULL, address ${text}, user_agent ${text})`,
      sql`CREATE INDEX "_dashboard_sessions_user" ON ${sessions} (user_id)`,
      sql`CREATE INDEX "_dashboard_sessions_created" ON ${sessions} (created_at)`,
    ]
  },
]

export const prepareDashboardTables = (database: Database): Promise<void> =>
  preparePlatformTables(database, namespace, 'dashboard', steps)
