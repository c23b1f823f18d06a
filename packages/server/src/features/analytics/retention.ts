/**
 * Retention. Rows of the request log expire by age or total size. Data older than 90 days is rolled up: a day of events
 * is closed, which counts its distinct users once and for all, and its events are removed in small steps; counts of
 * minutes and last-seen rows expire at the same age. Each step may be interrupted or run on two nodes at once: closing
 * is a transaction that takes effect once, and removal is idempotent.
 */
import type { Transaction } from '../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../engines/sql/sql-text.ts'
import { rawRetentionMs, requestRowBytes, rollUpMarginMs, rollUpRowsMax } from '../../limits/analytics.ts'
import { clockSkewMs } from '../../limits/sqlite.ts'
import type { Store } from './migrations.ts'
import { allEvents, allRequests, eventBytes, eventSeries, within } from './series.ts'
import { dayOf, dayStart, idBound, minuteOf, msOfId, msOfMinute, unitMinutes } from './time.ts'

/** Runs all due steps; starts none after the signal. */
export type RollUp = (signal?: AbortSignal) => Promise<void>

interface DayOfName {
  readonly name: string
  readonly count: unknown
  readonly users: unknown
}

/** Bounds of single requests and events. */
export interface RawBounds {
  readonly requests: { readonly retentionMs: number; readonly bytesMax: number }
  readonly events: { readonly bytesMax: number }
}

/**
 * The minute after the last one whose count, together with all later ones of the series, exceeds `countMax`. Computed
 * from the counts, which include every row, so that rows need not be counted. 0 if all rows may be kept.
 */
async function findExcess(
  { database, counts }: Store,
  name: string,
  sinceMinute: number,
  countMax: number,
): Promise<number> {
  const [over] = await database.all<{ minute: number | null }>(sql`SELECT max(minute) AS minute FROM (
    SELECT minute, sum(count) OVER (ORDER BY minute DESC) AS later FROM ${counts}
    WHERE series = ${name} AND minute >= ${sinceMinute}) AS counted WHERE later > ${countMax}`)
  return Number(over?.minute ?? -1) + 1
}

/** Series with rows older than a minute. */
async function findSeries({ database, series }: Store, table: SqlText, before: number): Promise<string[]> {
  const found = await database.all<{ series: string }>(
    sql`SELECT s.series FROM ${series} AS s
      WHERE EXISTS (SELECT 1 FROM ${table} AS old WHERE old.series = s.series AND old.minute < ${before})`,
  )
  return found.map((row) => row.series)
}

export function createRollUp(store: Store, now: () => number, bounds: () => RawBounds): RollUp {
  const { database, events, daily, logs, series, counts, seen } = store
  /** The minute before which this process has found nothing left: the search reads all last-seen rows. */
  let clearedTo = 0
  /** Events before this minute exceeded the bound and are removed. It never decreases. */
  let excessTo = 0

  async function findOldestDay(before: number): Promise<number | null> {
    const [oldest] = await database.all<{ id: string }>(
      sql`SELECT id FROM ${events} WHERE id < ${idBound(msOfMinute(before))} ORDER BY id LIMIT 1`,
    )
    return oldest ? dayStart(msOfId(oldest.id)) : null
  }

  const setUsers = (tx: Transaction, name: string, day: string, users: unknown): Promise<number> =>
    tx.run(sql`UPDATE ${daily} SET users = ${Number(users)} WHERE series = ${name} AND day = ${day} AND users IS NULL`)

  /**
   * Counts the users of a day while all its events exist. The first to close the day wins: events are removed only
   * afterwards, so a later reader, which has counted too few, no longer writes.
   */
  async function closeDay(start: number): Promise<void> {
    const day = dayOf(start)
    const ofDay = sql`id >= ${idBound(msOfMinute(start))} AND id < ${idBound(msOfMinute(start + unitMinutes.day))}`
    const names = await database.all<DayOfName>(
      sql`SELECT name, count(DISTINCT user_id) AS users FROM ${events} WHERE ${ofDay} GROUP BY name`,
    )
    const [all] = await database.all<DayOfName>(
      sql`SELECT count(DISTINCT user_id) AS users FROM ${events} WHERE ${ofDay}`,
    )
    await database.write(async (tx) => {
      if ((await setUsers(tx, allEvents, day, all?.users)) === 0) return
      for (const { name, users } of names) await setUsers(tx, eventSeries(name), day, users)
    })
  }

  /**
   * Removes rows in batches. `column` identifies rows within the condition. One statement per row, in order: the engine
   * writes a log page for each anyway, since the rows are scattered.
   */
  async function remove(table: SqlText, condition: SqlText, column: SqlText, signal?: AbortSignal): Promise<void> {
    while (!signal?.aborted) {
      const some = await database.all<{ key: string | number }>(
        sql`SELECT ${column} AS key FROM ${table} WHERE ${condition} ORDER BY ${column} LIMIT ${rollUpRowsMax}`,
      )
      if (some.length === 0) return
      await database.write(async (tx) => {
        for (const { key } of some) tx.send(sql`DELETE FROM ${table} WHERE ${condition} AND ${column} = ${key}`)
      })
      if (some.length < rollUpRowsMax) return
    }
  }

  /** Removes event names without counts that were not used recently, which makes room for others. */
  async function forgetNames(before: number): Promise<void> {
    await database.write((tx) =>
      tx.run(
        sql`DELETE FROM ${series} WHERE ${within(sql`series`, eventSeries(''))} AND since < ${before}
          AND NOT EXISTS (SELECT 1 FROM ${counts} AS c WHERE c.series = ${series}.series)`,
      ),
    )
  }

  /**
   * Rows written by a clock running ahead get the current time; otherwise they would stay until that time is reached.
   */
  async function clampFutureRows(signal?: AbortSignal): Promise<void> {
    const nowMs = now()
    const ahead = idBound(nowMs + clockSkewMs)
    while (!signal?.aborted) {
      const [found] = await database.all(sql`SELECT id FROM ${logs} WHERE id >= ${ahead} LIMIT 1`)
      if (!found) return
      const head = idBound(nowMs)
      await database.write((tx) =>
        tx.run(sql`UPDATE ${logs} SET id = ${head} || substr(id, ${head.length + 1}) WHERE id IN (
          SELECT id FROM ${logs} WHERE id >= ${ahead} ORDER BY id LIMIT ${rollUpRowsMax})`),
      )
    }
  }

  async function trimLogs(signal?: AbortSignal): Promise<void> {
    await clampFutureRows(signal)
    const { retentionMs, bytesMax } = bounds().requests
    const oldest = minuteOf(now() - retentionMs)
    const excess = await findExcess(store, allRequests, oldest, Math.floor(bytesMax / requestRowBytes))
    await remove(logs, sql`id < ${idBound(msOfMinute(Math.max(oldest, excess)))}`, sql`id`, signal)
  }

  /** Closes and removes the days before a minute. */
  async function removeDays(before: number, signal?: AbortSignal): Promise<void> {
    while (!signal?.aborted) {
      const start = await findOldestDay(before)
      if (start === null) return
      await closeDay(start)
      await remove(events, sql`id < ${idBound(msOfMinute(start + unitMinutes.day))}`, sql`id`, signal)
    }
  }

  /**
   * Removes the oldest events beyond their size. Days that are over go as a whole and are closed first, so that their
   * users are counted; of a day in progress that exceeds the bound by itself, the oldest minutes go.
   */
  async function trimEvents(oldest: number, signal?: AbortSignal): Promise<void> {
    const found = await findExcess(store, eventBytes, Math.max(oldest, excessTo), bounds().events.bytesMax)
    excessTo = Math.max(excessTo, found)
    if (excessTo <= oldest) return
    const start = dayStart(msOfMinute(excessTo - 1))
    const isOver = start + unitMinutes.day <= minuteOf(now() - rollUpMarginMs)
    await removeDays(isOver ? start + unitMinutes.day : start, signal)
    if (!isOver) await remove(events, sql`id < ${idBound(msOfMinute(excessTo))}`, sql`id`, signal)
  }

  return async (signal) => {
    await trimLogs(signal)
    const before = dayStart(now() - rawRetentionMs - rollUpMarginMs)
    await removeDays(before, signal)
    await trimEvents(before, signal)
    if (clearedTo === before) return
    for (const name of await findSeries(store, counts, before))
      await remove(counts, sql`series = ${name} AND minute < ${before}`, sql`minute`, signal)
    for (const name of await findSeries(store, seen, before))
      await remove(seen, sql`series = ${name} AND minute < ${before}`, sql`user_id`, signal)
    if (signal?.aborted) return
    await forgetNames(before)
    clearedTo = before
  }
}
