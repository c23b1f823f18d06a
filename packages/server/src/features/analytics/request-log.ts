/**
 * The request log. Requests are counted in memory, off the response path, and written twice a second in one
 * transaction: sums per minute for all requests, and rows of single requests up to a bound. A crash loses less than a
 * second of unwritten counts; a shutdown loses none.
 */
import type { ManyColumn } from '../../engines/sql/dialect.ts'
import type { Transaction } from '../../engines/sql/sql.ts'
import { ident } from '../../engines/sql/sql-text.ts'
import type { ResponseListener } from '../../http/handle.ts'
import { requestMinutesWaitingMax, requestRowsPerFlushMax, requestUsersPerFlushMax } from '../../limits/analytics.ts'
import { clockSkewMs } from '../../limits/sqlite.ts'
import { logsTable, type Store } from './migrations.ts'
import {
  addCounts,
  addSeries,
  allRequests,
  type Count,
  type Counts,
  categorySeries,
  countOf,
  endpointSeries,
  insertRows,
  type LastSeen,
  readLastSeen,
  saveLastSeen,
} from './series.ts'
import { createEventId, minuteOf, unitMinutes } from './time.ts'

export interface RequestLog {
  /** `endpoint` is the name of the endpoint's declaration. */
  noteOf(endpoint: string): ResponseListener
  /** Writes what has been counted. Rejects on failure and keeps the counts for the next flush. */
  flush(): Promise<void>
  /** Number of single-request rows that were omitted and of minutes that could not be written in time. */
  readonly dropped: number
}

export interface RequestLogDeps {
  readonly store: Store
  readonly categoryOf: (endpoint: string) => string
  /** False disables writing. */
  readonly isOn: () => boolean
  readonly now: () => number
}

/** Requests to one endpoint within a minute. */
interface Tally {
  count: number
  errors: number
  durationUs: number
  readonly users: Set<string>
}

/** A minute in progress. */
interface Minute {
  readonly minute: number
  readonly tallies: Map<string, Tally>
}

interface RequestRow {
  /** Time of the response, in milliseconds since 1970. */
  readonly ms: number
  readonly endpoint: string
  readonly method: string
  readonly status: number
  readonly durationUs: number
  readonly userId: string | null
}

const rowColumns: readonly ManyColumn[] = [
  { column: ident('id'), type: 'text' },
  { column: ident('method'), type: 'text' },
  { column: ident('endpoint'), type: 'text' },
  { column: ident('category'), type: 'text' },
  { column: ident('status'), type: 'integer' },
  { column: ident('us'), type: 'integer' },
  { column: ident('user_id'), type: 'text' },
]

export function createRequestLog({ store, categoryOf, isOn, now }: RequestLogDeps): RequestLog {
  const { database } = store
  const { dialect } = database
  /** Last minutes of users by series, as stored. */
  const seen: LastSeen = new Map()
  let minutes: Minute[] = []
  let rows: RequestRow[] = []
  let dropped = 0
  let flushing: Promise<void> = Promise.resolve()

  function minuteAt(nowMs: number): Minute {
    const minute = minuteOf(nowMs)
    const last = minutes.at(-1)
    if (last?.minute === minute) return last
    const begun: Minute = { minute, tallies: new Map() }
    minutes.push(begun)
    if (minutes.length > requestMinutesWaitingMax) {
      minutes.shift()
      dropped++
    }
    return begun
  }

  function tallyOf({ tallies }: Minute, endpoint: string): Tally {
    let tally = tallies.get(endpoint)
    if (!tally) {
      tally = { count: 0, errors: 0, durationUs: 0, users: new Set() }
      tallies.set(endpoint, tally)
    }
    return tally
  }

  /** Sums of the endpoint, its category and all requests; distinct users are counted later. */
  function countsOf({ minute, tallies }: Minute): { counts: Counts; users: Map<string, Set<string>> } {
    const counts: Counts = new Map()
    const users = new Map<string, Set<string>>()
    for (const [endpoint, tally] of tallies) {
      const category = categoryOf(endpoint)
      for (const series of [allRequests, categorySeries(category), endpointSeries(category, endpoint)]) {
        const count = countOf(counts, series, minute)
        count.count += tally.count
        count.errors += tally.errors
        count.durationUs += tally.durationUs
        users.set(series, users.get(series)?.union(tally.users) ?? tally.users)
      }
    }
    return { counts, users }
  }

  /**
   * Counts users at their first request in the minute, its hour and its day. Requests are processed in order of time,
   * so a user whose last request was before the interval has not been counted in it.
   */
  async function countUsers(tx: Transaction, count: Count, users: ReadonlySet<string>): Promise<Map<string, number>> {
    const { series, minute } = count
    const known = seen.get(series)
    // A time in the future was written by a clock running ahead and is ignored.
    const ahead = minuteOf(now() + clockSkewMs)
    const past = (seenAt = 0): number => (seenAt > ahead ? 0 : seenAt)
    const fresh = [...users].filter((userId) => past(known?.get(userId)) < minute)
    if (fresh.length === 0) return new Map()
    const last = await readLastSeen(tx, store, series, fresh)
    const isFirst = (userId: string, length: number): boolean =>
      Math.floor(past(last.get(userId)) / length) < Math.floor(minute / length)
    for (const userId of fresh) {
      if (isFirst(userId, unitMinutes.minute)) count.users++
      if (isFirst(userId, unitMinutes.hour)) count.usersHour++
      if (isFirst(userId, unitMinutes.day)) count.usersDay++
    }
    return new Map(fresh.map((userId) => [userId, minute]))
  }

  async function writeMinute(tx: Transaction, counted: Minute): Promise<LastSeen> {
    const { minute } = counted
    const { counts, users } = countsOf(counted)
    const lastSeen: LastSeen = new Map()
    for (const series of counts.keys())
      lastSeen.set(series, await countUsers(tx, countOf(counts, series, minute), users.get(series) ?? new Set()))
    const fresh = [...counts.keys()].filter((series) => !seen.has(series))
    addSeries(tx, store, fresh, minute)
    addCounts(tx, store, counts, true)
    saveLastSeen(tx, store, lastSeen, minuteOf(now() + clockSkewMs))
    return lastSeen
  }

  /** Covers the last minute of each series only: recent users are likely to return. */
  function remember(written: readonly LastSeen[]): void {
    for (const lastSeen of written) for (const [series, users] of lastSeen) rememberSeries(series, users)
  }

  function rememberSeries(series: string, users: Map<string, number>): void {
    const known = seen.get(series)
    const [minute] = users.values()
    const [knownMinute] = known?.values() ?? []
    if (!known || (minute !== undefined && minute !== knownMinute)) seen.set(series, users)
    else for (const [userId, at] of users) if (known.size < requestUsersPerFlushMax) known.set(userId, at)
  }

  function writeRows(tx: Transaction, written: readonly RequestRow[]): void {
    insertRows(
      tx,
      dialect,
      logsTable,
      rowColumns,
      written.map(({ ms, endpoint, method, status, durationUs, userId }, at) => [
        createEventId(ms, at),
        method,
        endpoint,
        categoryOf(endpoint),
        status,
        durationUs,
        userId,
      ]),
    )
  }

  async function write(): Promise<void> {
    if (minutes.length === 0) return
    const taken = minutes
    const takenRows = rows
    minutes = []
    rows = []
    try {
      const written = await database.write(async (tx) => {
        // Serializes nodes, so that each sees the users that others have counted.
        await tx.lock('analytics requests')
        writeRows(tx, takenRows)
        const lastSeen: LastSeen[] = []
        for (const minute of taken) lastSeen.push(await writeMinute(tx, minute))
        return lastSeen
      })
      remember(written)
    } catch (error) {
      putBack(taken, takenRows)
      throw error
    }
  }

  /** Merges counts that could not be written with those that came later. */
  function putBack(taken: readonly Minute[], takenRows: readonly RequestRow[]): void {
    const merged = new Map(taken.map((minute) => [minute.minute, minute]))
    for (const { minute, tallies } of minutes) {
      const known = merged.get(minute)
      if (!known) merged.set(minute, { minute, tallies })
      else for (const [endpoint, tally] of tallies) addTally(tallyOf(known, endpoint), tally)
    }
    const all = [...merged.values()].sort((a, b) => a.minute - b.minute)
    minutes = all.slice(-requestMinutesWaitingMax)
    const waiting = [...takenRows, ...rows]
    rows = waiting.slice(0, requestRowsPerFlushMax)
    dropped += all.length - minutes.length + waiting.length - rows.length
  }

  return {
    noteOf(endpoint) {
      return (method, status, ms, userId) => {
        if (!isOn()) return
        const nowMs = now()
        const tally = tallyOf(minuteAt(nowMs), endpoint)
        const durationUs = Math.round(ms * 1000)
        tally.count++
        tally.durationUs += durationUs
        if (status >= 400) tally.errors++
        if (userId !== null && tally.users.size < requestUsersPerFlushMax) tally.users.add(userId)
        if (rows.length < requestRowsPerFlushMax) rows.push({ ms: nowMs, endpoint, method, status, durationUs, userId })
        else dropped++
      }
    },
    flush() {
      flushing = flushing.catch(() => undefined).then(write)
      return flushing
    },
    get dropped() {
      return dropped
    },
  }
}

function addTally(to: Tally, from: Tally): void {
  to.count += from.count
  to.errors += from.errors
  to.durationUs += from.durationUs
  for (const userId of from.users) to.users.add(userId)
}
