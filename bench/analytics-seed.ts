/**
 * Fills a data folder with events and requests of the last 94 days: 91 days that stay, and three that the roll-up is to
 * close. The tables are the program's own; rows are written in bulk, and counts derived from them in SQL, since what
 * events cost when they come one by one is measured afterwards.
 */
import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { createLog } from '../src/base/log.ts'
import { openSql } from '../src/engines/open.ts'
import { analyticsNamespace, prepareAnalytics } from '../src/features/analytics/tables.ts'
import { createEventId, dayOf, minuteOf } from '../src/features/analytics/time.ts'
import { hash } from './data.ts'
import type { OnProgress } from './seed.ts'

const seededDays = 94
const names = 40
const users = 100_000
const dayMs = 24 * 60 * 60_000
const rowsPerTransaction = 100_000

/** The most frequent name, and a user with more events than most. */
export const frequentEvent = 'event-0'
export const busyUser = userName(0)

function userName(number: number): string {
  return `user-${String(number).padStart(31, '0')}`
}

/** Names and users are spread unevenly, as they are everywhere; one event in five is nobody's. */
function eventAt(turn: number, ms: number): (string | number | null)[] {
  const [a, b, c] = [hash(3 * turn), hash(3 * turn + 1), hash(3 * turn + 2)]
  const name = Math.floor(((a % 10_000) / 10_000) ** 2 * names)
  const user = Math.floor(((b % 1_000_000) / 1_000_000) ** 2 * users)
  const properties = `{"plan":"plan-${c % 3}","amount":${b % 1000},"source":"web"}`
  return [
    createEventId(Math.floor(ms), turn % 4096),
    `event-${name}`,
    c % 5 === 0 ? null : userName(user),
    minuteOf(ms),
    properties,
  ]
}

function insertEvents(db: Database, count: number, firstMs: number, onProgress: OnProgress): void {
  const insert = db.prepare('INSERT INTO _events (id, name, user_id, minute, properties) VALUES (?, ?, ?, ?, ?)')
  const stepMs = (seededDays * dayMs) / count
  for (let done = 0; done < count; done += rowsPerTransaction) {
    db.transaction(() => {
      const end = Math.min(count, done + rowsPerTransaction)
      for (let turn = done; turn < end; turn++) insert.run(...eventAt(turn, firstMs + turn * stepMs))
    })()
    onProgress(done, count)
  }
  insert.finalize()
}

/** What `ingest` would have counted. */
function countEvents(db: Database): void {
  const noMore = '0, 0, 0, 0, 0'
  const day = `strftime('%Y-%m-%d', minute * 60, 'unixepoch')`
  db.run(`INSERT INTO _counts SELECT 'event:' || name, minute, count(*), ${noMore} FROM _events GROUP BY name, minute`)
  db.run(`INSERT INTO _counts SELECT 'events', minute, sum(count), ${noMore} FROM _counts GROUP BY minute`)
  db.run(`INSERT INTO _events_daily SELECT series, ${day}, sum(count), 0, 0, NULL FROM _counts GROUP BY series, ${day}`)
  db.run(`INSERT INTO _series SELECT DISTINCT series, 0 FROM _events_daily`)
  db.run(`INSERT INTO _seen SELECT 'event:' || name, user_id, max(minute) FROM _events
    WHERE user_id IS NOT NULL GROUP BY name, user_id`)
  db.run(`INSERT INTO _seen SELECT 'events', user_id, max(minute) FROM _seen GROUP BY user_id`)
}

/** Requests of every minute in nine series, each with a share of the same five thousand users. */
function insertRequests(db: Database, firstMs: number): void {
  const endpoints = ['db:records.list', 'db:records.get', 'db:records.insert', 'auth:users.me', 'storage:storage.list']
  const series = [
    'requests',
    ...['db', 'auth', 'storage'].map((category) => `requests:${category}`),
    ...endpoints.map((endpoint) => `endpoint:${endpoint}`),
  ]
  const first = minuteOf(firstMs)
  const last = first + seededDays * 24 * 60
  const count = db.prepare('INSERT INTO _counts VALUES (?, ?, ?, ?, ?, ?, ?, ?)')
  const daily = db.prepare('INSERT INTO _events_daily VALUES (?, ?, ?, ?, ?, ?)')
  const seen = db.prepare('INSERT INTO _seen VALUES (?, ?, ?)')
  db.transaction(() => {
    for (const [at, name] of series.entries()) {
      db.run('INSERT INTO _series VALUES (?, 0)', [name])
      for (let minute = first; minute < last; minute++) {
        const requests = 50 + (hash(minute + at) % 50)
        count.run(name, minute, requests, requests % 7, requests * 800, 20, minute % 60 === 0 ? 300 : 5, 3)
      }
      for (let minute = first; minute < last; minute += 24 * 60)
        daily.run(name, dayOf(minute), 100_000, 5000, 80_000_000, 4000)
      for (let user = 0; user < 5000; user++) seen.run(name, userName(user), last - (hash(user) % (last - first)))
    }
  })()
  for (const statement of [count, daily, seen]) statement.finalize()
}

/** The folder must be empty. */
export async function seedAnalytics(folder: string, count: number, onProgress: OnProgress): Promise<void> {
  const log = createLog({ level: 'error', format: 'json' })
  const sql = await openSql({ databaseUrl: null, dataFolder: folder, prepareInstance: async () => {}, log })
  await prepareAnalytics(sql)
  await sql.close()
  const db = new Database(join(folder, 'databases', `${analyticsNamespace}.sqlite`))
  // Nothing here needs to survive a crash.
  db.run('PRAGMA journal_mode = OFF')
  db.run('PRAGMA synchronous = OFF')
  db.run('PRAGMA cache_size = -1000000')
  db.run('PRAGMA temp_store = MEMORY')
  const indexes = db.query(
    "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = '_events' AND sql > ''",
  )
  const made = indexes.all() as { name: string; sql: string }[]
  indexes.finalize()
  for (const { name } of made) db.run(`DROP INDEX ${name}`)
  const firstMs = Date.now() - seededDays * dayMs
  insertEvents(db, count, firstMs, onProgress)
  for (const { sql: text } of made) db.run(text)
  countEvents(db)
  insertRequests(db, firstMs)
  onProgress(count, count)
  db.close()
}
