/**
 * Writes events. Requests that arrive together share a transaction, which stores the events and their counts: an
 * acknowledged event is durable and counted. Also enforces the limit of event names.
 */
import type { ManyColumn } from '../../engines/sql/dialect.ts'
import type { Transaction } from '../../engines/sql/sql.ts'
import { ident, sql } from '../../engines/sql/sql-text.ts'
import { type FieldError, invalid, unavailable } from '../../errors.ts'
import {
  eventBatchMax,
  eventNamesKnownMs,
  eventNamesMax,
  eventRowBytes,
  eventsWaitingMax,
  lastSeenCachedMax,
} from '../../limits/analytics.ts'
import { eventsTable, type Store } from './migrations.ts'
import {
  addCounts,
  addSeries,
  allEvents,
  type Counts,
  countOf,
  eventBytes,
  eventSeries,
  insertRows,
  type LastSeen,
  recordLastSeen,
  saveLastSeen,
  within,
} from './series.ts'
import { minuteOf } from './time.ts'
import type { TrackedEvent } from './track-input.ts'

export interface Ingest {
  /**
   * Stores events; resolves when they are durable. Throws 400 that names the events beyond the limit of event names,
   * unless the caller is trusted; 503 while too many are queued.
   */
  add(events: readonly TrackedEvent[], options: { readonly isTrusted: boolean; readonly nowMs: number }): Promise<void>
  /** Number of queued events. */
  readonly waiting: number
}

interface Waiting {
  readonly events: readonly TrackedEvent[]
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

const eventColumns: readonly ManyColumn[] = ['id', 'name', 'user_id', 'minute', 'properties'].map((name) => ({
  column: ident(name),
  type: name === 'minute' ? 'integer' : 'text',
}))

/** What an event takes: its id and name are in both indexes, its user in one. */
const bytesOf = ({ name, userId, properties }: TrackedEvent): number =>
  eventRowBytes +
  3 * Buffer.byteLength(name) +
  (userId === null ? 0 : 2 * Buffer.byteLength(userId)) +
  Buffer.byteLength(properties)

export function createIngest(store: Store): Ingest {
  const { database } = store
  const { dialect } = database
  /** Accepted event names and the time of acceptance: the roll-up removes names that were unused for months. */
  let known = new Set<string>()
  let knownSinceMs = 0
  /** Users seen in the newest minute, by series. */
  const seen = new Map<string, Set<string>>()
  let newest = 0
  let remembered = 0
  let queue: Waiting[] = []
  let waiting = 0
  let writing = false

  /** Registers event names; returns those beyond the limit, in which case none is registered. */
  async function admitNames(names: readonly string[], isTrusted: boolean, minute: number): Promise<Set<string>> {
    const wanted = names.map(eventSeries)
    const refused = await database.write(async (tx) => {
      await tx.lock('analytics names')
      const found = await tx.all<{ series: string }>(
        sql`SELECT series FROM ${store.series} WHERE ${dialect.inList(sql`series`, wanted, 'text')}`,
      )
      const there = new Set(found.map(({ series }) => series))
      const [row] = await tx.all<{ n: unknown }>(
        sql`SELECT count(*) AS n FROM ${store.series} WHERE ${within(sql`series`, eventSeries(''))}`,
      )
      const room = isTrusted ? names.length : Math.max(0, eventNamesMax - Number(row?.n))
      const fresh = names.filter((name) => !there.has(eventSeries(name)))
      // A rejected request registers nothing. Existing names are renewed, so that none expires now.
      if (fresh.length <= room) addSeries(tx, store, [allEvents, eventBytes, ...wanted], minute)
      return new Set(fresh.slice(room))
    })
    if (refused.size === 0) for (const name of names) known.add(name)
    return refused
  }

  /** Whether a user was already recorded for a series in the newest minute. */
  const isKnown = (series: string, userId: string, minute: number): boolean =>
    minute === newest && seen.get(series)?.has(userId) === true

  function storeAll(tx: Transaction, events: readonly TrackedEvent[]): LastSeen {
    const counts: Counts = new Map()
    const lastSeen: LastSeen = new Map()
    for (const event of events) {
      const { name, userId, minute } = event
      countOf(counts, eventBytes, minute).count += bytesOf(event)
      for (const series of [allEvents, eventSeries(name)]) {
        countOf(counts, series, minute).count++
        if (userId !== null && !isKnown(series, userId, minute)) recordLastSeen(lastSeen, series, userId, minute)
      }
    }
    const rows = events.map(({ id, name, userId, minute, properties }) => [id, name, userId, minute, properties])
    insertRows(tx, dialect, eventsTable, eventColumns, rows)
    addCounts(tx, store, counts, false)
    saveLastSeen(tx, store, lastSeen)
    return lastSeen
  }

  /** Covers the newest minute only: users of one request often appear in the next. */
  function remember(lastSeen: LastSeen): void {
    for (const [series, users] of lastSeen)
      for (const [userId, minute] of users) {
        if (minute < newest || (minute === newest && remembered >= lastSeenCachedMax)) continue
        if (minute > newest) {
          newest = minute
          remembered = 0
          seen.clear()
        }
        const known = seen.get(series)
        if (known) known.add(userId)
        else seen.set(series, new Set([userId]))
        remembered++
      }
  }

  function nextBatch(): Waiting[] {
    let events = 0
    let taken = 0
    while (taken < queue.length && events < eventBatchMax) events += (queue[taken++] as Waiting).events.length
    const batch = queue.slice(0, taken)
    queue = queue.slice(taken)
    return batch
  }

  async function writeBatch(batch: readonly Waiting[]): Promise<void> {
    const events = batch.flatMap((one) => one.events)
    try {
      remember(await database.write(async (tx) => storeAll(tx, events)))
      for (const { resolve } of batch) resolve()
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
    waiting -= events.length
  }

  async function writeQueued(): Promise<void> {
    while (queue.length > 0) await writeBatch(nextBatch())
    writing = false
  }

  return {
    async add(events, { isTrusted, nowMs }) {
      if (nowMs - knownSinceMs >= eventNamesKnownMs) {
        known = new Set()
        knownSinceMs = nowMs
      }
      const names = [...new Set(events.map(({ name }) => name))].filter((name) => !known.has(name))
      const refused = names.length > 0 ? await admitNames(names, isTrusted, minuteOf(nowMs)) : new Set<string>()
      if (refused.size > 0) {
        const wrong: FieldError = { code: 'max', message: `exceeds the limit of ${eventNamesMax} event names` }
        const at = events.flatMap(({ name }, index) => (refused.has(name) ? [`events[${index}].name`] : []))
        throw invalid(Object.fromEntries(at.map((path) => [path, wrong])))
      }
      if (waiting + events.length > eventsWaitingMax) throw unavailable()
      waiting += events.length
      await new Promise<void>((resolve, reject) => {
        queue.push({ events, resolve, reject })
        if (writing) return
        writing = true
        void writeQueued()
      })
    },
    get waiting() {
      return waiting
    },
  }
}
