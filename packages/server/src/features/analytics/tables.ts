/**
 * The tables of analytics: how they are made and what they are called in statements. They have a database of their own,
 * so that on the embedded engine their writes never wait for those of records, nor the other way round. What stands in
 * them is said in decision 20.
 */
import type { Dialect } from '../../engines/sql/dialect.ts'
import { type PlatformStep, platformTable, preparePlatformTables } from '../../engines/sql/platform-tables.ts'
import type { Database, Sql } from '../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../engines/sql/sql-text.ts'

/** No declared namespace begins so. */
export const analyticsNamespace = '_analytics'

export const eventsTable = platformTable(analyticsNamespace, '_events')
export const dailyTable = platformTable(analyticsNamespace, '_events_daily')
export const logsTable = platformTable(analyticsNamespace, '_logs')
export const seriesTable = platformTable(analyticsNamespace, '_series')
export const countsTable = platformTable(analyticsNamespace, '_counts')
export const seenTable = platformTable(analyticsNamespace, '_seen')

/** The feature's database, and its tables as statements name them. */
export interface Store {
  readonly database: Database
  /** Events as they came; the id says when they happened, `minute` less exactly. */
  readonly events: SqlText
  /** Per day and series what there was, kept for ever. Of events, `users` is null until the day is closed. */
  readonly daily: SqlText
  /** Requests one by one. */
  readonly logs: SqlText
  /** What is counted, by a minute in which it was asked for. */
  readonly series: SqlText
  /** Per minute and series what there was, for as long as the events themselves. */
  readonly counts: SqlText
  /** Which user was part of a series, and the last minute of it. */
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

/** Makes the tables, or brings them to the newest version. Throws when a newer version of the program made them. */
export async function prepareAnalytics(engine: Sql): Promise<Store> {
  const database = engine.database({ namespace: analyticsNamespace, instanceId: null })
  await preparePlatformTables(database, analyticsNamespace, 'analytics', [firstStep])
  return storeOf(database, database.dialect)
}
