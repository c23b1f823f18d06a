/** The roll-up: retention by age and size, and recovery after a failure at any step. */

import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog } from '../../src/base/log.ts'
import { openSql } from '../../src/engines/open.ts'
import { decorateDatabase } from '../../src/engines/sql/decorate-database.ts'
import type { Database } from '../../src/engines/sql/sql.ts'
import { sql } from '../../src/engines/sql/sql-text.ts'
import { createEventReports } from '../../src/features/analytics/event-reports.ts'
import { Ingest } from '../../src/features/analytics/ingest.ts'
import { prepareAnalyticsTables, type Store } from '../../src/features/analytics/migrations.ts'
import { RequestLog } from '../../src/features/analytics/request-log.ts'
import { createRollUp } from '../../src/features/analytics/retention.ts'
import { allEvents, allRequests, eventBytes } from '../../src/features/analytics/series.ts'
import { createEventId, minuteOf } from '../../src/features/analytics/time.ts'
import type { TrackedEvent } from '../../src/features/analytics/track-input.ts'
import {
  eventRowBytes,
  rawEventsBytesMax,
  requestLogBytesMax,
  requestLogRetentionMs,
  requestRowBytes,
} from '../../src/limits/analytics.ts'
import { responseBytesMax } from '../../src/limits/api.ts'
import { type Engine, engines } from '../harness/engines.ts'

const dayMs = 24 * 60 * 60 * 1000
const firstMs = Date.UTC(2026, 0, 10)
const nowMs = firstMs + 200 * dayMs

const opened: (() => unknown)[] = []
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close()
})

async function openStore(engine: Engine): Promise<Store> {
  const storage = await engine.openStorage()
  opened.push(storage.remove)
  const dataFolder = mkdtempSync(join(tmpdir(), 'plinth-roll-up-'))
  opened.push(() => rmSync(dataFolder, { recursive: true }))
  const log = createLog({ level: 'error', format: 'json', write: () => {} })
  const { databaseUrl = null } = storage.settings
  const all = await openSql({ databaseUrl, dataFolder, prepareInstance: async () => {}, log })
  opened.push(all.close)
  return prepareAnalyticsTables(all)
}

/** Two days, each with more events than one step removes. */
const sent: readonly TrackedEvent[] = Array.from({ length: 1100 }, (_, each): TrackedEvent => {
  const ms = firstMs + Math.floor((each / 1100) * 2 * dayMs)
  return {
    id: createEventId(ms, each % 4096),
    minute: minuteOf(ms),
    name: each % 3 === 0 ? 'buy' : 'view',
    userId: each % 5 === 0 ? null : `user-${(each * 7) % 31}`,
    properties: '{}',
  }
})

const fill = async (store: Store): Promise<void> => {
  const ingest = new Ingest(store)
  for (let at = 0; at < sent.length; at += 100)
    await ingest.add(sent.slice(at, at + 100), { isTrusted: true, nowMs: firstMs + 3 * dayMs })
}

const read = async ({ database, daily }: Store): Promise<unknown[]> =>
  (
    await database.all<Record<string, unknown>>(
      sql`SELECT series, day, count, users FROM ${daily} WHERE series LIKE 'event%'`,
    )
  )
    .map(({ series, day, count, users }) => `${series} ${day} ${count} ${users}`)
    .sort()

/** The expected summaries. */
const expected = Object.entries(
  Object.groupBy(
    sent.flatMap((event) => [
      { ...event, series: 'events' },
      { ...event, series: `event:${event.name}` },
    ]),
    ({ series, minute }) => `${series} ${new Date(minute * 60_000).toISOString().slice(0, 10)}`,
  ),
)
  .map(([key, events = []]) => `${key} ${events.length} ${new Set(events.flatMap(({ userId }) => userId ?? [])).size}`)
  .sort()

/** A database that fails after this number of writes. */
function failingAfter(database: Database, writes: number): Database {
  let left = writes
  return decorateDatabase(database, {
    write: (work) => (left-- > 0 ? database.write(work) : Promise.reject(new Error('The database is unavailable'))),
  })
}

const rawBounds = {
  requests: { retentionMs: requestLogRetentionMs, bytesMax: requestLogBytesMax },
  events: { bytesMax: rawEventsBytesMax },
}

for (const engine of engines)
  test(`[ANA-KEEP-7, ANA-KEEP-8] request rows are removed by age and by size, on ${engine.name}`, async () => {
    const store = await openStore(engine)
    let atMs = nowMs
    const requests = new RequestLog({ store, categoryOf: () => 'db', isOn: () => true, now: () => atMs })
    const note = requests.listenerOf('records.list')
    const count = async (): Promise<number> =>
      Number((await store.database.all<{ n: unknown }>(sql`SELECT count(*) AS n FROM ${store.logs}`))[0]?.n)
    const trim = (bytesMax = requestLogBytesMax) =>
      createRollUp(
        store,
        () => atMs,
        () => ({ ...rawBounds, requests: { retentionMs: 7 * dayMs, bytesMax } }),
      )()
    for (let minute = 0; minute < 5; minute++) {
      for (let i = 0; i < 10; i++) note('GET', 200, 1, 'ada')
      await requests.flush()
      atMs += 60_000
    }
    await trim()
    expect(await count()).toBe(50)
    // The limit allows two and a half of these minutes.
    await trim(25 * requestRowBytes)
    expect(await count()).toBe(20)
    // The clock jumps ahead once.
    const beforeMs = atMs
    atMs += 365 * dayMs
    for (let i = 0; i < 10; i++) note('GET', 200, 1, 'ada')
    await requests.flush()
    atMs = beforeMs
    await trim()
    expect(await count()).toBe(30)
    // A user last seen in the future is still counted now.
    note('GET', 200, 1, 'ada')
    await requests.flush()
    const [seen] = await store.database.all(sql`SELECT users FROM ${store.counts}
      WHERE series = ${allRequests} AND minute = ${minuteOf(atMs)}`)
    expect(Number(seen?.users)).toBe(1)
    atMs += 7 * dayMs + 60_000
    await trim()
    expect(await count()).toBe(0)
    // Counts are kept.
    const [counted] = await store.database.all<{ n: unknown }>(sql`SELECT sum(count) AS n FROM ${store.counts}`)
    expect(Number(counted?.n)).toBe(61 * 3)
  })

for (const engine of engines)
  test(`[ANA-KEEP-9] events are removed by size, past days completely and after they are summarized, on ${engine.name}`, async () => {
    const store = await openStore(engine)
    await fill(store)
    const { database, events, counts } = store
    // The second day is in progress.
    let atMs = firstMs + 2 * dayMs - 1
    const rollUps = new Map<number, ReturnType<typeof createRollUp>>()
    const trim = (bytesMax: number): Promise<void> => {
      const known = rollUps.get(bytesMax)
      const bounds = { ...rawBounds, events: { bytesMax } }
      const rollUp =
        known ??
        createRollUp(
          store,
          () => atMs,
          () => bounds,
        )
      rollUps.set(bytesMax, rollUp)
      return rollUp()
    }
    const idsLeft = async (): Promise<string[]> =>
      (await database.all<{ id: string }>(sql`SELECT id FROM ${events} ORDER BY id`)).map(({ id }) => id)
    const bytesOf = async (): Promise<number> => {
      const [row] = await database.all<{ n: unknown }>(
        sql`SELECT sum(count) AS n FROM ${counts} WHERE series = ${eventBytes}`,
      )
      return Number(row?.n)
    }
    const all = await bytesOf()
    expect(all).toBeGreaterThan(1100 * eventRowBytes)
    await trim(all)
    expect(await idsLeft()).toHaveLength(1100)
    // One byte over the limit: the first day, which is past, is removed completely, and its users are counted.
    await trim(all - 1)
    const ids = sent.map(({ id }) => id).sort()
    expect(await idsLeft()).toEqual(ids.slice(550))
    expect((await read(store)).filter((line) => String(line).includes('2026-01-10'))).toEqual(
      expected.filter((line) => line.includes('2026-01-10')),
    )
    // The limit allows about a quarter: the oldest events of the current day are removed.
    await trim(Math.floor(all / 4))
    const left = await idsLeft()
    expect(left).toEqual(ids.slice(-left.length))
    expect(Math.abs(left.length - 275)).toBeLessThan(10)
    // An event older than the retained ones is removed by the next roll-up, even after a restart.
    const late = { ...(sent[0] as TrackedEvent), id: createEventId(firstMs, 4095) }
    await new Ingest(store).add([late], { isTrusted: true, nowMs: atMs })
    rollUps.clear()
    await trim(Math.floor(all / 4))
    expect(await idsLeft()).toEqual(left)
    atMs += 2 * dayMs
    await trim(0)
    expect(await idsLeft()).toEqual([])
    // Event counts are kept.
    const [counted] = await database.all<{ n: unknown }>(
      sql`SELECT sum(count) AS n FROM ${counts} WHERE series = ${allEvents}`,
    )
    expect(Number(counted?.n)).toBe(1101)
  })

for (const engine of engines)
  test(`[ANA-KEEP-3] a roll-up that fails at any step produces the same summaries when repeated, on ${engine.name}`, async () => {
    let steps = 0
    for (let isComplete = false; !isComplete; steps++) {
      const store = await openStore(engine)
      await fill(store)
      const cut = createRollUp(
        { ...store, database: failingAfter(store.database, steps) },
        () => nowMs,
        () => rawBounds,
      )
      isComplete = await cut().then(
        () => true,
        () => false,
      )
      // A summarized day has the right count, whatever has been removed since.
      const closed = (await read(store)).filter((line) => !String(line).endsWith(' null'))
      for (const line of closed) expect(expected).toContain(line as string)
      await createRollUp(
        store,
        () => nowMs,
        () => rawBounds,
      )()
      expect([steps, await read(store)]).toEqual([steps, expected])
      const [left] = await store.database.all<{ n: unknown }>(sql`SELECT count(*) AS n FROM ${store.events}`)
      expect(Number(left?.n)).toBe(0)
    }
    expect(steps).toBeGreaterThan(12)
  })

for (const engine of engines) {
  test(`[ANA-KEEP-5] a name that was removed and is used again is counted as before, on ${engine.name}`, async () => {
    const store = await openStore(engine)
    // This node still has the name cached; the roll-up runs on another node.
    const ingest = new Ingest(store)
    const addAt = (ms: number) => {
      const event = { id: createEventId(ms, 0), minute: minuteOf(ms), name: 'yearly', userId: 'ada', properties: '{}' }
      return ingest.add([event], { isTrusted: false, nowMs: ms })
    }
    await addAt(firstMs)
    await createRollUp(
      store,
      () => nowMs,
      () => rawBounds,
    )()
    await addAt(nowMs)
    const reports = createEventReports({
      store,
      responseBytes: () => responseBytesMax,
      now: () => nowMs + 60_000,
    })
    const { topEvents } = await reports.topEvents({ event: null, userId: null, range: '1h' }, 10)
    expect(topEvents).toEqual([{ eventName: 'yearly', count: 1, uniqueUsers: 1 }])
    await createRollUp(
      store,
      () => nowMs + 100 * dayMs,
      () => rawBounds,
    )()
    expect(await store.database.all(sql`SELECT * FROM ${store.counts}`)).toEqual([])
  })

  test(`[ANA-KEEP-6] an aborted roll-up starts no further step, and completes when repeated, on ${engine.name}`, async () => {
    const store = await openStore(engine)
    await fill(store)
    const ending = new AbortController()
    let writes = 0
    const database = decorateDatabase(store.database, {
      write(work) {
        if (++writes === 2) ending.abort()
        return store.database.write(work)
      },
    })
    const rollUp = createRollUp(
      { ...store, database },
      () => nowMs,
      () => rawBounds,
    )
    await rollUp(ending.signal)
    expect(writes).toBe(2)
    await rollUp()
    expect(await read(store)).toEqual(expected)
    expect(await store.database.all(sql`SELECT id FROM ${store.events}`)).toEqual([])
  })
}
