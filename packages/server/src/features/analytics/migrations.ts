/**
 * Tables of analytics: their migrations and their names in statements. They are in a database of their own, so that on
 * the embedded engine their writes and those of records never wait for each other. Decision 20 describes their
 * contents.
 */
import type { Dialect } from '../../engines/sql/dialect.ts'
import { type PlatformStep, platformTable, preparePlatformTables } from '../../engines/sql/platform-tables.ts'
import type { Database, Sql } from '../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../engines/sql/sql-text.ts'

/** Declared namespaces cannot start with an underscore. */
export const analyticsNamespace = '_analytics'

export const eventsTable = platformTable(analyticsNamespace, '_events')
export const dailyTable = platformTable(analyticsNamespace, '_events_daily')
export const logsTable = platformTable(analyticsNamespace, '_logs')
export const seriesTable = platformTable(analyticsNamespace, '_series')
export const countsTable = platformTable(analyticsNamespace, '_counts')
export const seenTable = platformTable(analyticsNamespace, '_seen')

/** The feature's database and its tables in statements. */
export interface Store {
  readonly database: Database
  /** Raw events; the id contains the time, `minute` is a coarser one for grouping. */
  readonly events: SqlText
  /** Counts per day and series, kept forever. For events, `users` is null until the day is closed. */
  readonly daily: SqlText
  /** Single requests. */
  readonly logs: SqlText
  /** Registered series, with the minute of their last registration. */
  readonly series: SqlText
  /** Counts per minute and series, kept as long as raw events. */
  readonly counts: SqlText
  /** Last minute of each user's activity, by series. */
  readonly seen: SqlText
}

const firstStep: PlatformStep = ({ columnTypes, target, clustered }) => {
  const text: SqlText = { text: columnTypes.text, values: [] }
  const counted = sql`count BIGINT NOT NULL, errors BIGINT NOT NULL, us BIGINT NOT NULL`
  const events = target(eventsTable)
  return [
    sql`CREATE TABLE ${events} (id ${text} PRIMARY KEY, name ${text} NOT NULL, user_id ${text},
      minute INTEGER NOT NULL, properties TEXT NOT NULL)${clustered}`,
    sql`CREATE INDEX events_name ON ${events} (name, id)`,
    sql`CREATE INDEX events_user ON ${events} (user_id, id, name, minute) WHERE user_id IS NOT NULL`,
    sql`CREATE TABLE ${target(logsTable)} (id ${text} PRIMARY KEY, method ${text} NOT NULL, endpoint ${text} NOT NULL,
      category ${text} NOT NULL, status INTEGER NOT NULL, us BIGINT NOT NULL, user_id ${text})${clustered}`,
    sql`CREATE TABLE ${target(seriesTable)} (series ${text} PRIMARY KEY, since INTEGER NOT NULL)${clustered}`,
    sql`CREATE TABLE ${target(countsTable)} (series ${text} NOT NULL, minute INTEGER NOT NULL, ${counted},
      users BIGINT NOT NULL, users_hour BIGINT NOT NULL, users_day BIGINT NOT NULL,
      PRIMARY KEY (series, minute))${clustered}`,
    sql`CREATE TABLE ${target(dailyTable)} (series ${text} NOT NULL, day ${text} NOT NULL, ${counted}, users BIGINT,
      PRIMARY KEY (series, day))${clustered}`,
    sql`CREATE TABLE ${target(seenTable)} (series ${text} NOT NULL, user_id ${text} NOT NULL, minute INTEGER NOT NULL,
      PRIMARY KEY (series, user_id))${clustered}`,
  ]
}

const storeOf = (database: Database, { target }: Dialect): Store => ({
  database,
  events: target(eventsTable),
  daily: target(dailyTable),
  logs: target(logsTable),
  series: target(seriesTable),
  counts: target(countsTable),
  seen: target(seenTable),
})

/** Creates the tables or migrates them to the current version. Throws if a newer version of the server created them. */
export async function prepareAnalyticsTables(engine: Sql): Promise<Store> {
  const database = engine.database({ namespace: analyticsNamespace, instanceId: null })
  await preparePlatformTables(database, analyticsNamespace, 'analytics', [firstStep])
  return storeOf(database, database.dialect)
}
