/**
 * Series of counts: all events, events of one name, all requests, requests of a category, requests to an endpoint. They
 * are counted per minute and per day in the transaction that stores the events or requests, so reports add up counts
 * and read no events. `ingest` and `request-log` decide what is counted.
 */
import type { Dialect, ManyColumn, TableRef } from '../../engines/sql/dialect.ts'
import type { Reader, Transaction } from '../../engines/sql/sql.ts'
import { ident, join, type SqlScalar, type SqlText, sql } from '../../engines/sql/sql-text.ts'
import { invalidField } from '../../errors.ts'
import { itemBytesMax } from '../../http/replies/large-responses.ts'
import { reportPointBytes, reportPointsMax } from '../../limits/analytics.ts'
import { countsTable, dailyTable, type Store, seenTable, seriesTable } from './migrations.ts'
import { dayOf, nextDayStart, type Unit, unitMinutes } from './time.ts'

export const allEvents = 'events'
export const eventSeries = (name: string): string => `event:${name}`
/** Bytes that events take, with their part of the indexes: its count is a number of bytes. */
export const eventBytes = 'bytes'
export const allRequests = 'requests'
export const categorySeries = (category: string): string => `requests:${category}`
export const endpointSeries = (category: string, endpoint: string): string => `endpoint:${category}:${endpoint}`

/** Selects series by a name prefix that ends in a colon. */
export const within = (column: SqlText, prefix: string): SqlText =>
  sql`${column} > ${prefix} AND ${column} < ${`${prefix.slice(0, -1)};`}`

/** Counts of one minute of a series. */
export interface Count {
  readonly series: string
  readonly minute: number
  count: number
  errors: number
  /** Total duration in microseconds. */
  durationUs: number
  /** Users whose first activity in the minute, in its hour, on its day this is. */
  users: number
  usersHour: number
  usersDay: number
}

/** The last minute of activity of each user, by series and user. */
export type LastSeen = Map<string, Map<string, number>>

/** Counts, by series and minute. */
export type Counts = Map<string, Map<number, Count>>

/** Returns the count of a minute to add to; creates it if absent. */
export function countOf(counts: Counts, series: string, minute: number): Count {
  let minutes = counts.get(series)
  if (!minutes) {
    minutes = new Map()
    counts.set(series, minutes)
  }
  let count = minutes.get(minute)
  if (!count) {
    count = { series, minute, count: 0, errors: 0, durationUs: 0, users: 0, usersHour: 0, usersDay: 0 }
    minutes.set(minute, count)
  }
  return count
}

/** Records a user's activity in a series, unless a later one is known. */
export function recordLastSeen(lastSeen: LastSeen, series: string, userId: string, minute: number): void {
  const users = lastSeen.get(series)
  if (!users) lastSeen.set(series, new Map([[userId, minute]]))
  else if ((users.get(userId) ?? 0) < minute) users.set(userId, minute)
}

/** A sum of counts. */
export interface Total {
  readonly count: number
  readonly errors: number
  /** Total duration in microseconds. */
  readonly durationUs: number
}

export interface Point extends Total {
  /** The first minute of the hour or day. */
  readonly minute: number
  readonly users: number
}

export interface Ranked extends Total {
  readonly series: string
}

interface TotalRow {
  readonly count: unknown
  readonly errors: unknown
  readonly us: unknown
}

/** Engines return sums as text if integers may exceed 2^53, and null for no rows. */
const totalOf = ({ count, errors, us }: TotalRow): Total => ({
  count: Number(count ?? 0),
  errors: Number(errors ?? 0),
  durationUs: Number(us ?? 0),
})

const text = (name: string): ManyColumn => ({ column: ident(name), type: 'text' })
const integer = (name: string): ManyColumn => ({ column: ident(name), type: 'integer' })

const countColumns = ['count', 'errors', 'us', 'users', 'users_hour', 'users_day'].map(integer)
const totalColumns = ['count', 'errors', 'us'].map(integer)

/**
 * Inserts rows with distinct primary keys, in key order, so that concurrent writers of the same keys cannot deadlock.
 */
export function insertRows(
  tx: Transaction,
  { target, insertMany }: Dialect,
  table: TableRef,
  columns: readonly ManyColumn[],
  rows: readonly (readonly SqlScalar[])[],
  onConflict: SqlText = sql``,
): void {
  if (rows.length === 0) return
  if (insertMany) {
    const valuesOf = (_: ManyColumn, at: number): SqlScalar[] => rows.map((row) => row[at] as SqlScalar)
    tx.send(sql`${insertMany(table, columns)(columns.map(valuesOf))}${onConflict}`)
    return
  }
  const names = join(
    columns.map(({ column }) => column),
    ', ',
  )
  const placeholders = columns.map(() => '?').join(', ')
  const { text: into } = sql`INSERT INTO ${target(table)} (${names}) VALUES`
  // One statement per row: the engine writes a log page for each anyway, since the rows are scattered.
  const statement = `${into} (${placeholders})${onConflict.text}`
  for (const values of rows) tx.send({ text: statement, values })
}

const inOrder = <Key extends string | number, Value>(map: ReadonlyMap<Key, Value>): [Key, Value][] =>
  [...map].sort(([a], [b]) => (a < b ? -1 : 1))

/** Adds the new values to the stored ones. */
const adding = (table: SqlText, columns: readonly ManyColumn[]): SqlText =>
  join(
    columns.map(({ column }) => sql`${column} = ${table}.${column} + excluded.${column}`),
    ', ',
  )

/** Rows per day: series, day, count, errors, microseconds, users. */
function daysOf(counts: readonly Count[]): (string | number)[][] {
  const rows: (string | number)[][] = []
  for (const { series, minute, count, errors, durationUs, usersDay } of counts) {
    const day = dayOf(minute)
    let row = rows.at(-1)
    if (row?.[0] !== series || row[1] !== day) {
      row = [series, day, 0, 0, 0, 0]
      rows.push(row)
    }
    for (const [at, more] of [count, errors, durationUs, usersDay].entries())
      row[at + 2] = (row[at + 2] as number) + more
  }
  return rows
}

/**
 * Adds to the counts of minutes and days. With `knowsUsers` false, daily users are not written: they are counted when
 * the day is closed.
 */
export function addCounts(tx: Transaction, store: Store, counts: Counts, knowsUsers: boolean): void {
  const { dialect } = store.database
  const sorted = inOrder(counts).flatMap(([, minutes]) => inOrder(minutes).map(([, count]) => count))
  const columns = knowsUsers ? [...totalColumns, integer('users')] : totalColumns
  insertRows(
    tx,
    dialect,
    countsTable,
    [text('series'), integer('minute'), ...countColumns],
    sorted.map((c) => [c.series, c.minute, c.count, c.errors, c.durationUs, c.users, c.usersHour, c.usersDay]),
    sql` ON CONFLICT (series, minute) DO UPDATE SET ${adding(store.counts, countColumns)}`,
  )
  insertRows(
    tx,
    dialect,
    dailyTable,
    [text('series'), text('day'), ...columns],
    daysOf(sorted).map((row) => row.slice(0, columns.length + 2)),
    sql` ON CONFLICT (series, day) DO UPDATE SET ${adding(store.daily, columns)}`,
  )
}

/** Later than any minute, for callers without a bound. */
const lastMinute = 2 ** 31 - 1

/**
 * Stores the last minute of each user's activity. Stored minutes after `aheadMinute`, from a clock running ahead, are
 * replaced.
 */
export function saveLastSeen(
  tx: Transaction,
  store: Store,
  lastSeen: LastSeen,
  aheadMinute: number = lastMinute,
): void {
  const { seen, database } = store
  // An internal number as literal text: the clause after the rows cannot have parameters.
  const ahead: SqlText = { text: String(Math.trunc(aheadMinute)), values: [] }
  insertRows(
    tx,
    database.dialect,
    seenTable,
    [text('series'), text('user_id'), integer('minute')],
    inOrder(lastSeen).flatMap(([series, users]) => inOrder(users).map(([userId, minute]) => [series, userId, minute])),
    sql` ON CONFLICT (series, user_id) DO UPDATE SET minute = excluded.minute WHERE excluded.minute > ${seen}.minute
      OR ${seen}.minute > ${ahead}`,
  )
}

/** Registers series with the current minute. */
export function addSeries(tx: Transaction, { database }: Store, names: Iterable<string>, minute: number): void {
  const rows = [...names].sort().map((series) => [series, minute])
  const columns = [text('series'), integer('since')]
  const renewing = sql` ON CONFLICT (series) DO UPDATE SET since = excluded.since`
  insertRows(tx, database.dialect, seriesTable, columns, rows, renewing)
}

/** The total of a series since a minute. Full days are read from the daily counts. */
export async function readTotal({ database, daily, counts }: Store, series: string, start: number): Promise<Total> {
  const fullDays = nextDayStart(start)
  const [row] = await database.all<TotalRow>(
    sql`SELECT sum(part.count) AS count, sum(part.errors) AS errors, sum(part.us) AS us FROM (
        SELECT count, errors, us FROM ${daily} WHERE series = ${series} AND day >= ${dayOf(fullDays)}
        UNION ALL
        SELECT count, errors, us FROM ${counts}
          WHERE series = ${series} AND minute >= ${start} AND minute < ${fullDays}) AS part`,
  )
  return totalOf(row as TotalRow)
}

const userColumns: Readonly<Record<Unit, SqlText>> = {
  minute: sql`users`,
  hour: sql`users_hour`,
  day: sql`users_day`,
}

/**
 * Points of a series since a minute, by minute, hour or day, without empty ones. The first point counts events within
 * the range only, but users of its full interval.
 */
export async function readPoints(
  store: Store,
  series: string,
  start: number,
  unit: Unit,
  most: number,
): Promise<Point[]> {
  const length = unitMinutes[unit]
  // Minutes are already in table order. The length is literal text: some engines divide by a parameter as a fraction.
  const bucket: SqlText = { text: unit === 'minute' ? 'minute' : `minute / ${length}`, values: [] }
  const since = (column: SqlText): SqlText => sql`sum(CASE WHEN minute >= ${start} THEN ${column} ELSE 0 END)`
  // One JSON text: transferring a hundred thousand rows between threads costs more than reading them.
  const [row] = await store.database.all<{ points: string | null }>(
    sql`SELECT string_agg(point, ',') AS points FROM (
        SELECT '[' || (${bucket}) || ',' || ${since(sql`count`)} || ',' || ${since(sql`errors`)} || ','
          || ${since(sql`us`)} || ',' || sum(${userColumns[unit]}) || ']' AS point
        FROM ${store.counts} WHERE series = ${series} AND minute >= ${Math.floor(start / length) * length}
        GROUP BY ${bucket} LIMIT ${most + 1}) AS found`,
  )
  const written = withinPoints(JSON.parse(`[${row?.points ?? ''}]`) as WrittenPoint[], most)
  return written
    .filter(([, count]) => count > 0)
    .map(([at, count, errors, durationUs, users]): Point => ({ minute: at * length, count, errors, durationUs, users }))
    .sort((a, b) => a.minute - b.minute)
}

/** Number of points that fit into a response. */
export const pointsMax = (responseBytes: number): number =>
  Math.min(reportPointsMax, Math.floor(itemBytesMax(responseBytes) / reportPointBytes))

/** Returns the points. Throws 400 if there are too many. */
export function withinPoints<T>(points: readonly T[], most: number): readonly T[] {
  if (points.length > most)
    throw invalidField(
      'groupBy',
      'max',
      `produces more than ${most} points in this range; use a longer interval or a shorter range`,
    )
  return points
}

type WrittenPoint = readonly [bucket: number, count: number, errors: number, durationUs: number, users: number]

/** Number of users active in a series since a minute. */
export async function countUsers({ database, seen }: Store, series: string, start: number): Promise<number> {
  const [row] = await database.all<{ n: unknown }>(
    sql`SELECT count(*) AS n FROM ${seen} WHERE series = ${series} AND minute >= ${start}`,
  )
  return Number(row?.n)
}

/** As `countUsers`, for several series. */
export async function countUsersOf(
  { database, seen }: Store,
  names: readonly string[],
  start: number,
): Promise<ReadonlyMap<string, number>> {
  const found = await database.all<{ series: string; n: unknown }>(
    sql`SELECT series, count(*) AS n FROM ${seen}
      WHERE ${database.dialect.inList(sql`series`, names, 'text')} AND minute >= ${start} GROUP BY series`,
  )
  return new Map(found.map(({ series, n }) => [series, Number(n)]))
}

/** The series of a prefix with the highest counts since a minute, at most `limit`. */
export async function rankSeries(store: Store, prefix: string, start: number, limit: number): Promise<Ranked[]> {
  const { daily, counts, series } = store
  const fullDays = nextDayStart(start)
  // The join order is deliberate: a range of minutes for each series.
  const rows = await store.database.all<TotalRow & { series: string }>(
    sql`SELECT part.series AS series, sum(part.count) AS count, sum(part.errors) AS errors, sum(part.us) AS us FROM (
        SELECT series, count, errors, us FROM ${daily}
          WHERE ${within(sql`series`, prefix)} AND day >= ${dayOf(fullDays)}
        UNION ALL
        SELECT s.series, c.count, c.errors, c.us FROM ${series} AS s CROSS JOIN ${counts} AS c
          WHERE ${within(sql`s.series`, prefix)} AND c.series = s.series AND c.minute >= ${start}
            AND c.minute < ${fullDays}) AS part
      GROUP BY part.series ORDER BY 2 DESC, 1 LIMIT ${limit}`,
  )
  return rows.map((row) => ({ ...totalOf(row), series: row.series }))
}

/** Last minutes of users in a series, for those with a row. Locks the rows until the end of the transaction. */
export async function readLastSeen(
  tx: Reader,
  { database, seen }: Store,
  series: string,
  userIds: readonly string[],
): Promise<Map<string, number>> {
  const found = await tx.all<{ user_id: string; minute: number }>(
    sql`SELECT user_id, minute FROM ${seen}
      WHERE series = ${series} AND ${database.dialect.inList(sql`user_id`, userIds, 'text')}`,
  )
  return new Map(found.map(({ user_id, minute }) => [user_id, minute]))
}
