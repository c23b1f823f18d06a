/**
 * The request log. Requests are counted in memory, off the response path, and written twice a second in one
 * transaction: sums per minute for all requests, and rows of single requests up to a bound. A crash loses less than a
 * second of unwritten counts; a shutdown loses none.
 */
import type { ManyColumn } from '../../engines/sql/dialect.ts'
import type { Transaction } from '../../engines/sql/sql.ts'
import { ident } from '../../engines/sql/sql-text.ts'
import type { ResponseListener } from '../../http/responder.ts'
import { requestUsersPerFlushMax } from '../../limits/analytics.ts'
import { clockSkewMs } from '../../limits/sqlite.ts'
import { logsTable, type Store } from './migrations.ts'
import { type CountedRequests, type Minute, RequestCounts, type RequestRow } from './request-counts.ts'
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

export interface RequestLogDeps {
  readonly store: Store
  readonly categoryOf: (endpoint: string) => string
  /** False disables writing. */
  readonly isOn: () => boolean
  readonly now: () => number
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

export class RequestLog {
  readonly #store: Store
  readonly #categoryOf: (endpoint: string) => string
  readonly #isOn: () => boolean
  readonly #now: () => number
  readonly #counts = new RequestCounts()
  /** Last minutes of users by series, as stored. */
  readonly #seen: LastSeen = new Map()
  #flushing: Promise<void> = Promise.resolve()

  constructor({ store, categoryOf, isOn, now }: RequestLogDeps) {
    this.#store = store
    this.#categoryOf = categoryOf
    this.#isOn = isOn
    this.#now = now
  }

  /** Number of single-request rows that were omitted and of minutes that could not be written in time. */
  get dropped(): number {
    return this.#counts.dropped
  }

  /** The function that counts the requests to an endpoint, by the name of its declaration. */
  listenerOf(endpoint: string): ResponseListener {
    return (method, status, ms, userId) => {
      if (!this.#isOn()) return
      this.#counts.add(this.#now(), endpoint, method, status, Math.round(ms * 1000), userId)
    }
  }

  /** Writes what has been counted. Rejects on failure and keeps the counts for the next flush. */
  flush(): Promise<void> {
    this.#flushing = this.#flushing.catch(() => undefined).then(() => this.#write())
    return this.#flushing
  }

  async #write(): Promise<void> {
    const taken = this.#counts.take()
    if (!taken) return
    try {
      for (const lastSeen of await this.#store.database.write((tx) => this.#writeAll(tx, taken)))
        for (const [series, users] of lastSeen) this.#remember(series, users)
    } catch (error) {
      this.#counts.putBack(taken)
      throw error
    }
  }

  async #writeAll(tx: Transaction, { minutes, rows }: CountedRequests): Promise<readonly LastSeen[]> {
    // Serializes nodes, so that each sees the users that others have counted.
    await tx.lock('analytics requests')
    this.#writeRows(tx, rows)
    const lastSeen: LastSeen[] = []
    for (const minute of minutes) lastSeen.push(await this.#writeMinute(tx, minute))
    return lastSeen
  }

  #writeRows(tx: Transaction, rows: readonly RequestRow[]): void {
    const values = rows.map(({ ms, endpoint, method, status, durationUs, userId }, at) => [
      createEventId(ms, at),
      method,
      endpoint,
      this.#categoryOf(endpoint),
      status,
      durationUs,
      userId,
    ])
    insertRows(tx, this.#store.database.dialect, logsTable, rowColumns, values)
  }

  async #writeMinute(tx: Transaction, counted: Minute): Promise<LastSeen> {
    const { minute } = counted
    const { counts, users } = this.#countsOf(counted)
    const lastSeen: LastSeen = new Map()
    for (const series of counts.keys())
      lastSeen.set(series, await this.#countUsers(tx, countOf(counts, series, minute), users.get(series) ?? new Set()))
    const fresh = [...counts.keys()].filter((series) => !this.#seen.has(series))
    addSeries(tx, this.#store, fresh, minute)
    addCounts(tx, this.#store, counts, true)
    saveLastSeen(tx, this.#store, lastSeen, this.#futureMinute())
    return lastSeen
  }

  /** Sums of the endpoint, its category and all requests; distinct users are counted later. */
  #countsOf({ minute, tallies }: Minute): { counts: Counts; users: Map<string, Set<string>> } {
    const counts: Counts = new Map()
    const users = new Map<string, Set<string>>()
    for (const [endpoint, tally] of tallies) {
      const category = this.#categoryOf(endpoint)
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
  async #countUsers(tx: Transaction, count: Count, users: ReadonlySet<string>): Promise<Map<string, number>> {
    const { series, minute } = count
    const known = this.#seen.get(series)
    // A time in the future was written by a clock running ahead and is ignored.
    const ahead = this.#futureMinute()
    const past = (seenAt = 0): number => (seenAt > ahead ? 0 : seenAt)
    const fresh = [...users].filter((userId) => past(known?.get(userId)) < minute)
    if (fresh.length === 0) return new Map()
    const last = await readLastSeen(tx, this.#store, series, fresh)
    const isFirst = (userId: string, length: number): boolean =>
      Math.floor(past(last.get(userId)) / length) < Math.floor(minute / length)
    for (const userId of fresh) {
      if (isFirst(userId, unitMinutes.minute)) count.users++
      if (isFirst(userId, unitMinutes.hour)) count.usersHour++
      if (isFirst(userId, unitMinutes.day)) count.usersDay++
    }
    return new Map(fresh.map((userId) => [userId, minute]))
  }

  /** Covers the last minute of each series only: recent users are likely to return. */
  #remember(series: string, users: Map<string, number>): void {
    const known = this.#seen.get(series)
    const [minute] = users.values()
    const [knownMinute] = known?.values() ?? []
    if (!known || (minute !== undefined && minute !== knownMinute)) this.#seen.set(series, users)
    else for (const [userId, at] of users) if (known.size < requestUsersPerFlushMax) known.set(userId, at)
  }

  /** Later minutes are in the future, whichever node's clock is right. */
  #futureMinute(): number {
    return minuteOf(this.#now() + clockSkewMs)
  }
}
