/**
 * Tables of push notifications, in the database of the namespace `shared`, so that the transaction that ends a user's
 * session also removes its devices.
 */
import { type PlatformStep, platformTable, preparePlatformTables } from '../../engines/sql/platform-tables.ts'
import type { Database, Sql } from '../../engines/sql/sql.ts'
import { ident, type SqlText, sql } from '../../engines/sql/sql-text.ts'

const namespace = 'shared'

/**
 * `devices`: registered tokens. `topics`: the topics of each device. `marks`: dirty flags, tokens and topics whose
 * membership at FCM may be outdated. `logs`: results of messages.
 */
const names = ['devices', 'topics', 'marks', 'logs'] as const
export type PushTable = (typeof names)[number]

const refOf = (name: PushTable) => platformTable(namespace, `_push_${name}`)

/** The feature's tables, as targets of statements. */
export interface PushTables extends Readonly<Record<PushTable, SqlText>> {
  readonly database: Database
  /** The table in `FROM` under an alias, for joins. */
  as(name: PushTable, alias: string): SqlText
}

function tablesOf(database: Database): PushTables {
  const { dialect } = database
  const targets = Object.fromEntries(names.map((name) => [name, dialect.target(refOf(name))]))
  return {
    ...(targets as Record<PushTable, SqlText>),
    database,
    as: (name, alias) => dialect.from(refOf(name), ident(alias)),
  }
}

/** Times are milliseconds since 1970, JSON is text. */
const steps: readonly PlatformStep[] = [
  (dialect) => {
    const text: SqlText = { text: dialect.columnTypes.text, values: [] }
    const table = (name: PushTable): SqlText => dialect.target(refOf(name))
    return [
      // `kind` is the provider: 'fcm' or 'web'. `registered` orders a user's devices by their last registration.
      sql`CREATE TABLE ${table('devices')} (token_hash ${text} PRIMARY KEY, token ${text} NOT NULL, kind ${text} NOT NULL,
        user_id ${text} NOT NULL, device_id ${text} NOT NULL, platform ${text} NOT NULL, session_id ${text},
        metadata ${text} NOT NULL, created_at BIGINT NOT NULL, registered ${text} NOT NULL, UNIQUE (user_id, device_id))`,
      sql`CREATE INDEX "_push_devices_session" ON ${table('devices')} (session_id)`,
      sql`CREATE TABLE ${table('topics')} (user_id ${text} NOT NULL, device_id ${text} NOT NULL, topic ${text} NOT NULL,
        PRIMARY KEY (user_id, device_id, topic))`,
      sql`CREATE INDEX "_push_topics_topic" ON ${table('topics')} (topic, user_id, device_id)`,
      sql`CREATE TABLE ${table('marks')} (token_hash ${text} NOT NULL, topic ${text} NOT NULL, token ${text} NOT NULL,
        change ${text} NOT NULL, busy_until BIGINT NOT NULL, PRIMARY KEY (token_hash, topic))`,
      sql`CREATE INDEX "_push_marks_busy" ON ${table('marks')} (busy_until)`,
      sql`CREATE TABLE ${table('logs')} (id ${text} PRIMARY KEY, user_id ${text} NOT NULL, status ${text} NOT NULL,
        platform ${text} NOT NULL, title ${text} NOT NULL, body ${text} NOT NULL, created_at BIGINT NOT NULL,
        error ${text})`,
      sql`CREATE INDEX "_push_logs_user" ON ${table('logs')} (user_id, id)`,
      sql`CREATE INDEX "_push_logs_created" ON ${table('logs')} (created_at)`,
    ]
  },
]

/** Creates the tables or migrates them to the current version. Throws if a newer version of the server created them. */
export async function preparePushTables(engine: Sql): Promise<PushTables> {
  const database = engine.database({ namespace, instanceId: null })
  await preparePlatformTables(database, namespace, 'push', steps)
  return tablesOf(database)
}
