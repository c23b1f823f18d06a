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

export type DashboardTable = 'sessions' | 'audit' | 'audit_intents' | 'audit_start' | 'views' | 'view_as' | 'key_uses'

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
  // `audit`: the chain. `audit_intents`: actions of administrators that are not over. `audit_start`: where the chain
  // begins once its oldest entries were removed.
  (dialect) => {
    const text: SqlText = { text: dialect.columnTypes.text, values: [] }
    const [audit, intents] = [dashboardTable(dialect, 'audit'), dashboardTable(dialect, 'audit_intents')]
    return [
      sql`CREATE TABLE ${audit} (seq BIGINT PRIMARY KEY, id ${text} NOT NULL UNIQUE, at BIGINT NOT NULL,
        actor ${text} NOT NULL, action ${text} NOT NULL, target ${text} NOT NULL, entry ${text} NOT NULL,
        hash ${text} NOT NULL)`,
      sql`CREATE INDEX "_dashboard_audit_actor" ON ${audit} (actor, seq)`,
      sql`CREATE INDEX "_dashboard_audit_action" ON ${audit} (action, seq)`,
      sql`CREATE INDEX "_dashboard_audit_at" ON ${audit} (at)`,
      sql`CREATE TABLE ${intents} (id ${text} PRIMARY KEY, at BIGINT NOT NULL, entry ${text} NOT NULL)`,
      sql`CREATE TABLE ${dashboardTable(dialect, 'audit_start')} (seq BIGINT NOT NULL, hash ${text} NOT NULL)`,
    ]
  },
  (dialect) => {
    const text: SqlText = { text: dialect.columnTypes.text, values: [] }
    return [
      sql`CREATE TABLE ${dashboardTable(dialect, 'views')} (user_id ${text} NOT NULL, area ${text} NOT NULL,
        name ${text} NOT NULL, content ${text} NOT NULL, updated_at BIGINT NOT NULL,
        PRIMARY KEY (user_id, area, name))`,
    ]
  },
  // Sessions that view as a user. `claims`: JSON of what the application computed at the start.
  (dialect) => {
    const text: SqlText = { text: dialect.columnTypes.text, values: [] }
    return [
      sql`CREATE TABLE ${dashboardTable(dialect, 'view_as')} (session_id ${text} PRIMARY KEY, user_id ${text} NOT NULL,
        admin_id ${text} NOT NULL, admin_email ${text}, address ${text} NOT NULL, started_at BIGINT NOT NULL,
        claims ${text})`,
    ]
  },
  (dialect) => {
    const text: SqlText = { text: dialect.columnTypes.text, values: [] }
    return [
      sql`CREATE TABLE ${dashboardTable(dialect, 'key_uses')} (name ${text} PRIMARY KEY, used_at BIGINT NOT NULL)`,
    ]
  },
]

export const prepareDashboardTables = (database: Database): Promise<void> =>
  preparePlatformTables(database, namespace, 'dashboard', steps)
