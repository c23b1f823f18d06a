/**
 * Names and migrations of the users tables. They are in the database of the namespace `shared`, so that a user and the
 * public record of that user change in one transaction.
 */
import type { Dialect } from '../../engines/sql/dialect.ts'
import { type PlatformStep, platformTable, preparePlatformTables } from '../../engines/sql/platform-tables.ts'
import type { Database, DatabaseAddress } from '../../engines/sql/sql.ts'
import { ident, type SqlText, sql } from '../../engines/sql/sql-text.ts'

/** The static namespace whose database contains the tables. */
export const usersNamespace = 'shared'
export const usersAddress: DatabaseAddress = { namespace: usersNamespace, instanceId: null }

const feature = 'users'

export type UsersTable =
  | 'users'
  | 'sessions'
  | 'identities'
  | 'one_time_tokens'
  | 'factors'
  | 'recovery_codes'
  | 'passkeys'
  | 'signing_keys'

const refOf = (name: UsersTable) => platformTable(usersNamespace, `_${name}`)

/** The table as the target of a write, or in `FROM` without an alias. */
export const usersTable = (dialect: Dialect, name: UsersTable): SqlText => dialect.target(refOf(name))

/** The table in `FROM` under an alias, for joins. */
export const usersTableAs = (dialect: Dialect, name: UsersTable, alias: string): SqlText =>
  dialect.from(refOf(name), ident(alias))

/** Migrates the tables to the newest version. Throws if a newer version of the program created them. */
export const prepareUsersTables = (database: Database): Promise<void> =>
  preparePlatformTables(database, usersNamespace, feature, steps)

/** Times are milliseconds since 1970, JSON is text, booleans are 0 or 1. */
const steps: readonly PlatformStep[] = [
  (dialect) => {
    const text: SqlText = { text: dialect.columnTypes.text, values: [] }
    const table = (name: UsersTable): SqlText => usersTable(dialect, name)
    return [
      sql`CREATE TABLE ${table('users')} (id ${text} PRIMARY KEY, email ${text} UNIQUE, password_hash ${text},
        display_name ${text}, avatar_url ${text}, role ${text} NOT NULL, email_verified_at BIGINT,
        email_visibility ${text} NOT NULL DEFAULT 'private', locale ${text}, disabled_at BIGINT,
        is_anonymous INTEGER NOT NULL, metadata ${text} NOT NULL, app_metadata ${text} NOT NULL,
        custom_claims ${text} NOT NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL)`,
      sql`CREATE INDEX "_users_created" ON ${table('users')} (created_at, id)`,
      sql`CREATE TABLE ${table('sessions')} (id ${text} PRIMARY KEY, user_id ${text} NOT NULL,
        generation INTEGER NOT NULL, refresh_hash ${text} NOT NULL, previous_hash ${text}, key_id ${text} NOT NULL,
        rotated_at BIGINT NOT NULL, created_at BIGINT NOT NULL, used_at BIGINT NOT NULL, expires_at BIGINT NOT NULL,
        user_agent ${text}, address ${text})`,
      sql`CREATE INDEX "_sessions_user" ON ${table('sessions')} (user_id)`,
      sql`CREATE INDEX "_sessions_expires" ON ${table('sessions')} (expires_at)`,
      sql`CREATE TABLE ${table('identities')} (id ${text} PRIMARY KEY, user_id ${text} NOT NULL,
        provider ${text} NOT NULL, subject ${text} NOT NULL, email ${text}, created_at BIGINT NOT NULL,
        UNIQUE (provider, subject))`,
      sql`CREATE INDEX "_identities_user" ON ${table('identities')} (user_id)`,
      sql`CREATE TABLE ${table('one_time_tokens')} (hash ${text} PRIMARY KEY, purpose ${text} NOT NULL, user_id ${text},
        email ${text}, data ${text} NOT NULL, attempts INTEGER NOT NULL, created_at BIGINT NOT NULL,
        expires_at BIGINT NOT NULL)`,
      sql`CREATE INDEX "_one_time_tokens_user" ON ${table('one_time_tokens')} (user_id)`,
      sql`CREATE INDEX "_one_time_tokens_email" ON ${table('one_time_tokens')} (purpose, email)`,
      sql`CREATE INDEX "_one_time_tokens_expires" ON ${table('one_time_tokens')} (expires_at)`,
      sql`CREATE TABLE ${table('factors')} (id ${text} PRIMARY KEY, user_id ${text} NOT NULL, secret ${text} NOT NULL,
        confirmed_at BIGINT, last_step BIGINT, created_at BIGINT NOT NULL)`,
      sql`CREATE INDEX "_factors_user" ON ${table('factors')} (user_id)`,
      sql`CREATE TABLE ${table('recovery_codes')} (user_id ${text} NOT NULL, hash ${text} NOT NULL,
        PRIMARY KEY (user_id, hash))`,
      sql`CREATE TABLE ${table('passkeys')} (id ${text} PRIMARY KEY, user_id ${text} NOT NULL, name ${text} NOT NULL,
        public_key ${text} NOT NULL, counter BIGINT NOT NULL, transports ${text} NOT NULL, backed_up INTEGER NOT NULL,
        created_at BIGINT NOT NULL, used_at BIGINT)`,
      sql`CREATE INDEX "_passkeys_user" ON ${table('passkeys')} (user_id)`,
      sql`CREATE TABLE ${table('signing_keys')} (id ${text} PRIMARY KEY, created_at BIGINT NOT NULL,
        retired_at BIGINT)`,
      sql`INSERT INTO ${table('signing_keys')} (id, created_at, retired_at) VALUES ('0', 0, NULL)`,
    ]
  },
  (dialect) => [sql`ALTER TABLE ${usersTable(dialect, 'users')} ADD COLUMN admin_password INTEGER NOT NULL DEFAULT 0`],
  // What the application has computed for the newest token of the user.
  (dialect) => [
    sql`ALTER TABLE ${usersTable(dialect, 'users')} ADD COLUMN hook_claims ${{ text: dialect.columnTypes.text, values: [] }}`,
  ],
  // The first administrator, created by the set-up link or the command line, becomes the owner. Applications may use
  // the role `admin` for others, who must not get the whole server with an update.
  (dialect) => {
    const users = usersTable(dialect, 'users')
    return [
      sql`ALTER TABLE ${users} ADD COLUMN dashboard_role ${{ text: dialect.columnTypes.text, values: [] }}`,
      sql`CREATE INDEX "_users_dashboard_role" ON ${users} (dashboard_role) WHERE dashboard_role IS NOT NULL`,
      sql`UPDATE ${users} SET dashboard_role = 'owner' WHERE id = (SELECT id FROM ${users}
        WHERE role = 'admin' AND disabled_at IS NULL AND password_hash IS NOT NULL ORDER BY created_at, id LIMIT 1)`,
    ]
  },
  // For searches by the beginning of a display name.
  (dialect) => [
    sql`CREATE INDEX "_users_display_name" ON ${usersTable(dialect, 'users')} (lower(display_name), id)
      WHERE display_name IS NOT NULL`,
  ],
]

/** A stored BIGINT as a number: PostgreSQL returns it as text. */
export const msOf = (stored: unknown): number => Number(stored)
export const msOrNullOf = (stored: unknown): number | null => (stored === null ? null : Number(stored))
