/**
 * Writes events. Requests that arrive together share a transaction, which stores the events and their counts: an
 * acknowledged event is durable and counted.
 */
import type { ManyColumn } from '../../engines/sql/dialect.ts'
import type { Transaction } from '../../engines/sql/sql.ts'
import { ident } from '../../engines/sql/sql-text.ts'
import { type FieldError, invalid, unavailable } from '../../errors.ts'
import { eventBatchMax, eventNamesMax, eventRowBytes, eventsWaitingMax } from '../../limits/analytics.ts'
import { EventNames } from './event-names.ts'
import { eventsTable, type Store } from './migrations.ts'
import { RecentUsers } from './recent-users.ts'
import {
  addCounts,
  allEvents,
  type Counts,
  countOf,
  eventBytes,
  eventSeries,
  insertRows,
  type LastSeen,
  recordLastSeen,
  saveLastSeen,
} from './series.ts'
import type { TrackedEvent } from './track-input.ts'

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

export class Ingest {
  readonly #store: Store
  readonly #names: EventNames
  readonly #recentUsers = new RecentUsers()
  #queue: Waiting[] = []
  #waiting = 0
  #isWriting = false

  constructor(store: Store) {
    this.#store = store
    this.#names = new EventNames(store)
  }

  /** Number of queued events. */
  get waiting(): number {
    return this.#waiting
  }

  /**
   * Stores events; resolves when they are durable. Throws 400 that names the events beyond the limit of event names,
   * unless the caller is trusted; 503 while too many are queued.
   */
  async add(
    events: readonly TrackedEvent[],
    { isTrusted, nowMs }: { readonly isTrusted: boolean; readonly nowMs: number },
  ): Promise<void> {
    const refused = await this.#names.admit(new Set(events.map(({ name }) => name)), isTrusted, nowMs)
    if (refused.size > 0) throw tooManyNames(events, refused)
    if (this.#waiting + events.length > eventsWaitingMax) throw unavailable()
    this.#waiting += events.length
    await new Promise<void>((resolve, reject) => {
      this.#queue.push({ events, resolve, reject })
      if (!this.#isWriting) void this.#writeQueued()
    })
  }

  async #writeQueued(): Promise<void> {
    this.#isWriting = true
    while (this.#queue.length > 0) await this.#writeBatch(this.#nextBatch())
    this.#isWriting = false
  }

  #nextBatch(): Waiting[] {
    const queue = this.#queue
    let events = 0
    let taken = 0
    while (taken < queue.length && events < eventBatchMax) events += (queue[taken++] as Waiting).events.length
    this.#queue = queue.slice(taken)
    return queue.slice(0, taken)
  }

  async #writeBatch(batch: readonly Waiting[]): Promise<void> {
    const events = batch.flatMap((one) => one.events)
    try {
      this.#recentUsers.add(await this.#store.database.write(async (tx) => this.#storeAll(tx, events)))
      for (const { resolve } of batch) resolve()
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
    this.#waiting -= events.length
  }

  #storeAll(tx: Transaction, events: readonly TrackedEvent[]): LastSeen {
    const store = this.#store
    const recent = this.#recentUsers
    const counts: Counts = new Map()
    const lastSeen: LastSeen = new Map()
    for (const event of events) {
      const { name, userId, minute } = event
      countOf(counts, eventBytes, minute).count += bytesOf(event)
      for (const series of [allEvents, eventSeries(name)]) {
        countOf(counts, series, minute).count++
        if (userId !== null && !recent.has(series, userId, minute)) recordLastSeen(lastSeen, series, userId, minute)
      }
    }
    const rows = events.map(({ id, name, userId, minute, properties }) => [id, name, userId, minute, properties])
    insertRows(tx, store.database.dialect, eventsTable, eventColumns, rows)
    addCounts(tx, store, counts, false)
    saveLastSeen(tx, store, lastSeen)
    return lastSeen
  }
}

function tooManyNames(events: readonly TrackedEvent[], refused: ReadonlySet<string>): Error {
  const wrong: FieldError = { code: 'max', message: `exceeds the limit of ${eventNamesMax} event names` }
  const at = events.flatMap(({ name }, index) => (refused.has(name) ? [`events[${index}].name`] : []))
  return invalid(Object.fromEntries(at.map((path) => [path, wrong])))
}
