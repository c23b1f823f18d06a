/**
 * Fills a database with events and requests of the last 94 days: 91 days that stay, and three that the roll-up is to
 * close. The tables are the program's own; rows are written in bulk, and counts derived from them in SQL, since what
 * events cost when they come one by one is measured apart.
 */
import { silentLog } from '../../packages/server/src/base/log.ts'
import { openSql } from '../../packages/server/src/engines/open.ts'
import { prepareAnalyticsTables } from '../../packages/server/src/features/analytics/migrations.ts'
import { createEventId, dayOf, minuteOf } from '../../packages/server/src/features/analytics/time.ts'
import { hash } from '../setup/data.ts'
import type { OnProgress } from '../setup/seed.ts'
import { type AnalyticsStore, openPostgresStore, openSqliteStore, type Row } from './store.ts'

const seededDays = 94
const names = 40
const users = 100_000
const dayMs = 24 * 60 * 60_000
const rowsPerInsert = 50_000

/** The most frequent name, and a user with more events than most. */
export const frequentEvent = 'event-0'
export const busyUser = userName(0)

function userName(number: number): string {
  return `user-${String(number).padStart(31, '0')}`
}

/** Names and users are distributed unevenly; one event in five has no user. */
function eventAt(index: number, ms: number): Row {
  const [a, b, c] = [hash(3 * index), hash(3 * index + 1), hash(3 * index + 2)]
  const name = Math.floor(((a % 10_000) / 10_000) ** 2 * names)
  const user = Math.floor(((b % 1_000_000) / 1_000_000) ** 2 * users)
  const properties = `{"plan":"plan-${c % 3}","amount":${b % 1000},"source":"web"}`
  return [
    createEventId(Math.floor(ms), index % 4096),
    `event-${name}`,
    c % 5 === 0 ? null : userName(user),
    minuteOf(ms),
    properties,
  ]
}

async function insertAll(store: AnalyticsStore, table: string, rows: readonly Row[]): Promise<void> {
  for (let at = 0; at < rows.length; at += rowsPerInsert) await store.insert(table, rows.slice(at, at + rowsPerInsert))
}

async function insertEvents(
  store: AnalyticsStore,
  count: number,
  firstMs: number,
  onProgress: OnProgress,
): Promise<void> {
  const stepMs = (seededDays * dayMs) / count
  for (let done = 0; done < count; done += rowsPerInsert) {
    const length = Math.min(rowsPerInsert, count - done)
    const rows = Array.from({ length }, (_, at) => eventAt(done + at, firstMs + (done + at) * stepMs))
    await store.insert('_events', rows)
    onProgress(done, count)
  }
}

/** Derives the counts that `ingest` maintains. */
async function countEvents(store: AnalyticsStore): Promise<void> {
  const noMore = '0, 0, 0, 0, 0'
  const { day } = store
  for (const statement of [
    `INSERT INTO _counts SELECT 'event:' || name, minute, count(*), ${noMore} FROM _events GROUP BY name, minute`,
    `INSERT INTO _counts SELECT 'events', minute, sum(count), ${noMore} FROM _counts GROUP BY minute`,
    `INSERT INTO _events_daily SELECT series, ${day}, sum(count), 0, 0, NULL FROM _counts GROUP BY series, ${day}`,
    `INSERT INTO _series SELECT DISTINCT series, 0 FROM _events_daily`,
    `INSERT INTO _seen SELECT 'event:' || name, user_id, max(minute) FROM _events
      WHERE user_id IS NOT NULL GROUP BY name, user_id`,
    `INSERT INTO _seen SELECT 'events', user_id, max(minute) FROM _seen GROUP BY user_id`,
  ])
    await store.run(statement)
}

/** Requests of every minute in nine series, each with a share of the same five thousand users. */
async function insertRequests(store: AnalyticsStore, firstMs: number): Promise<void> {
  const endpoints = ['db:records.list', 'db:records.get', 'db:records.insert', 'auth:users.me', 'storage:storage.list']
  const series = [
    'requests',
    ...['db', 'auth', 'storage'].map((category) => `requests:${category}`),
    ...endpoints.map((endpoint) => `endpoint:${endpoint}`),
  ]
  const first = minuteOf(firstMs)
  const minutes = Array.from({ length: seededDays * 24 * 60 }, (_, at) => first + at)
  const days = minutes.filter((minute) => (minute - first) % (24 * 60) === 0)
  const visitors = Array.from({ length: 5000 }, (_, at) => at)
  for (const [at, name] of series.entries()) {
    const countOf = (minute: number): Row => {
      const requests = 50 + (hash(minute + at) % 50)
      return [name, minute, requests, requests % 7, requests * 800, 20, minute % 60 === 0 ? 300 : 5, 3]
    }
    const seenAt = (user: number): number => first + minutes.length - (hash(user) % minutes.length)
    await insertAll(store, '_series', [[name, 0]])
    await insertAll(store, '_counts', minutes.map(countOf))
    await insertAll(
      store,
      '_events_daily',
      days.map((minute) => [name, dayOf(minute), 100_000, 5000, 80_000_000, 4000]),
    )
    await insertAll(
      store,
      '_seen',
      visitors.map((user) => [name, userName(user), seenAt(user)]),
    )
  }
}

/** Where events are stored: in PostgreSQL, or in the folder when `databaseUrl` is null. */
export interface AnalyticsLocation {
  readonly folder: string
  readonly databaseUrl: string | null
}

export const openStore = ({ folder, databaseUrl }: AnalyticsLocation, readonly: boolean): Promise<AnalyticsStore> =>
  databaseUrl === null ? Promise.resolve(openSqliteStore(folder, { readonly })) : openPostgresStore(databaseUrl)

/** The folder or the database must be empty. */
export async function seedAnalytics(location: AnalyticsLocation, count: number, onProgress: OnProgress): Promise<void> {
  const { folder, databaseUrl } = location
  const sql = await openSql({ databaseUrl, dataFolder: folder, prepareInstance: async () => {}, log: silentLog })
  await prepareAnalyticsTables(sql)
  await sql.close()
  const store = await openStore(location, false)
  const firstMs = Date.now() - seededDays * dayMs
  const indexes = await store.dropIndexes('_events')
  await insertEvents(store, count, firstMs, onProgress)
  for (const statement of indexes) await store.run(statement)
  await countEvents(store)
  await insertRequests(store, firstMs)
  await store.flush()
  onProgress(count, count)
  await store.close()
}
