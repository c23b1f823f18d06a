/**
 * The writes of one user that the server has not answered, kept on the device until it has.
 *
 * Each is sent under the idempotency key that it got when it was queued, so that sending it again after a crash, or
 * from two tabs, is one write. They are sent one after the other, in the order in which they were made. What is stored
 * is the truth, which the tabs share: every change of it also takes over what other tabs have added or sent.
 */
import type { Core } from '../core/core.ts'
import { backoffMs } from '../core/deadline.ts'
import { type Deferred, deferred } from '../core/deferred.ts'
import { failure, type PlinthError } from '../core/error.ts'
import { randomId } from '../core/ids.ts'
import { exclusively } from '../core/lock.ts'
import type { RecordWrite } from '../live/optimistic.ts'
import type { Row } from '../records/query.ts'
import type { WriteOptions } from '../records/table.ts'
import { setVersions } from '../records/versions.ts'
import type { RejectedWrite } from '../types/offline.ts'
import { mergePatches } from './merge.ts'
import type { Store } from './store.ts'

/** Writes that a queue may have. */
const writesMax = 1_000
/** How long the server certainly knows a key, in milliseconds: 24 hours, less what requests and clocks may take. */
const keyLifetimeMs = 23 * 60 * 60_000
/** How long a tab waits for another one that sends, in milliseconds: longer than a request takes. */
const lockWaitMs = 40_000

/** A write as it is stored. */
interface StoredWrite extends RecordWrite {
  readonly idempotencyKey: string
  readonly ifMatch?: string | undefined
  /** When it was first sent: from then on it must not change. */
  readonly sentAt?: number
}

/** What this tab knows of a stored write. */
export interface Entry {
  /** Of the server. Rejects where the write is rolled back. */
  readonly answer: Deferred<Row | undefined>
  /** Resolves as soon as the write is stored while the server is away: then a refusal is news of its own. */
  readonly accepted: Deferred<void>
  isAccepted: boolean
  /** Called when the write is stored no longer. */
  end(): void
}

interface BatchAnswer {
  readonly inserted: Row[]
  readonly updated: Row[]
  /** By the names above, in their order. */
  readonly versions?: Readonly<Record<string, (number | null)[]>>
}

export interface QueueEvents {
  /** Shows a write of an earlier visit, or of another tab. */
  show(write: RecordWrite, answer: Promise<unknown>): void
  reject(write: RejectedWrite): void
  /** The number of writes may have changed. */
  changed(): void
  /** What is stored has changed. */
  stored(): void
  /** Whether the user of this queue is still signed in. */
  isCurrent(): boolean
}

function parse(text: string | null | undefined): StoredWrite[] {
  try {
    const writes = JSON.parse(text as string) as StoredWrite[]
    return writes.filter(({ idempotencyKey, path }) => idempotencyKey && /^\/api\/db\//.test(path))
  } catch {
    return []
  }
}

const bodyOf = ({ operation, id, data, ifMatch }: StoredWrite): object => {
  if (operation === 'insert') return { inserts: [data] }
  return operation === 'update' ? { updates: [{ id, data, ifMatch }] } : { deletes: [ifMatch ? { id, ifMatch } : id] }
}

/** Both writes as one, where both are updates of one record and the first was not sent; null otherwise. */
function mergeWrites(
  last: StoredWrite | undefined,
  { operation, path, id, ifMatch, data }: StoredWrite,
): StoredWrite | null {
  if (!last || last.sentAt || last.ifMatch || ifMatch) return null
  if (operation !== 'update' || last.operation !== operation || last.path !== path || last.id !== id) return null
  const merged = mergePatches(last.data ?? {}, data ?? {})
  return merged && { ...last, data: merged }
}

/** Whether the server refuses the write itself. The page of a captive portal does not. */
const isRefusal = ({ status, slug }: PlinthError): boolean =>
  status >= 400 && status < 500 && ![401, 408, 429].includes(status) && slug !== 'invalid-answer'

function accept(entry: Entry): void {
  entry.isAccepted = true
  entry.accepted.resolve()
}

export class UserQueue {
  readonly #core: Core
  readonly #store: Store
  readonly #events: QueueEvents
  readonly #key: string
  /** By idempotency key. */
  readonly #entries = new Map<string, Entry>()
  #waiting: readonly StoredWrite[] = []
  /** Failed attempts since the last answer. */
  #failures = 0
  #hasAnswered = false
  #flushing: Promise<void> | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #isLeft = false

  constructor(core: Core, store: Store, user: string, events: QueueEvents) {
    this.#core = core
    this.#store = store
    this.#events = events
    this.#key = `writes|${user}`
  }

  get size(): number {
    return this.#waiting.length
  }

  /**
   * Changes what is stored, and takes over what other tabs have changed. `added`: the key of a write of this tab, which
   * is refused where there is no room for it.
   */
  async change(
    work: (writes: readonly StoredWrite[]) => readonly StoredWrite[] = (writes) => writes,
    added?: string,
  ): Promise<void> {
    const { change, charsMax } = this.#store
    let waiting: readonly StoredWrite[] = []
    let isChanged = false
    await change(this.#key, (before) => {
      waiting = work(parse(before))
      const text = JSON.stringify(waiting)
      if (added && (waiting.length > writesMax || text.length > charsMax)) throw failure('queue-full')
      isChanged = text !== before
      return text
    })
    if (this.#isLeft) return
    this.#waiting = waiting
    const keys = new Set(waiting.map(({ idempotencyKey }) => idempotencyKey))
    for (const write of waiting) if (!this.#entries.has(write.idempotencyKey)) this.#open(write, added)
    for (const [key, entry] of this.#entries)
      if (!keys.has(key)) {
        this.#entries.delete(key)
        entry.end()
      }
    this.#events.changed()
    if (isChanged) this.#events.stored()
  }

  #open(write: StoredWrite, added: string | undefined): void {
    const answer = deferred<Row | undefined>()
    const isAccepted = write.idempotencyKey !== added
    // Where it ends without an answer, another tab has sent it.
    const end = (): void => answer.resolve(undefined)
    this.#entries.set(write.idempotencyKey, { answer, accepted: deferred(), isAccepted, end })
    if (isAccepted) this.#events.show(write, answer.promise)
  }

  /** Stores a write, and sends it after those before it. Resolves when it is stored. */
  async add(write: RecordWrite, { idempotencyKey = randomId(), ifMatch }: WriteOptions): Promise<Entry> {
    let key = idempotencyKey
    const added: StoredWrite = JSON.parse(JSON.stringify({ ...write, idempotencyKey, ifMatch }))
    try {
      await this.change((writes) => {
        const merged = mergeWrites(writes.at(-1), added)
        if (merged) key = merged.idempotencyKey
        return merged ? [...writes.slice(0, -1), merged] : [...writes, added]
      }, idempotencyKey)
    } catch (cause) {
      throw failure('queue-full', undefined, cause)
    }
    const entry = this.#entries.get(key)
    // Stored for the user who has made it, who is not the one signed in now.
    if (!entry) throw failure('aborted')
    // While the server is away, the next attempt has its time.
    if (this.#failures > 0) accept(entry)
    else void this.flush().catch(() => undefined)
    return entry
  }

  /** Sends what waits. Concurrent calls share one run. */
  flush(): Promise<void> {
    this.#flushing ??= this.#flush().finally(() => {
      this.#flushing = undefined
    })
    return this.#flushing
  }

  #exclusively<Result>(work: () => Promise<Result>): Promise<Result> {
    return exclusively(this.#key + this.#core.url, lockWaitMs, work)
  }

  /** Gives up the first write, so that those behind it are sent. Resolves with it; null where nothing waits. */
  async discard(): Promise<RejectedWrite | null> {
    // The attempt under way decides which one is the first.
    await this.#flushing?.catch(() => undefined)
    const [write] = this.#waiting
    const discarded = write ? this.#reject(write, failure('discarded')) : null
    if (write) await this.#exclusively(() => this.#remove(write))
    void this.flush().catch(() => undefined)
    return discarded
  }

  async #flush(): Promise<void> {
    clearTimeout(this.#timer)
    try {
      while (this.#waiting.length > 0) await this.#exclusively(() => this.#sendFirst())
    } catch (error) {
      if (!this.#isLeft) {
        const { retryAfterMs = backoffMs(this.#failures) } = error as PlinthError
        this.#failures++
        for (const entry of this.#entries.values()) accept(entry)
        this.#timer = setTimeout(() => void this.flush().catch(() => undefined), retryAfterMs)
      }
      throw error
    }
  }

  async #sendFirst(): Promise<void> {
    const { credentials, options } = this.#core
    // A write that was sent can be repeated as long as the server knows its key, so none is sent into the void.
    if (!this.#hasAnswered || this.#failures > 0) await this.#core.send('GET', '/api/health', { retries: 0 })
    const token = await this.#core.accessToken()
    const now = Date.now()
    await this.change(([first, ...others]) => (first ? [{ sentAt: now, ...first }, ...others] : []))
    const [write] = this.#waiting
    // Another tab has sent it.
    if (!write) return
    if (!this.#events.isCurrent()) throw failure('aborted')
    const { path, idempotencyKey, sentAt = now } = write
    try {
      if (now - sentAt > keyLifetimeMs) throw failure('outcome-unknown')
      const { data } = await this.#core.send('POST', `${path}/batch`, {
        body: bodyOf(write),
        query: { versions: '1' },
        idempotencyKey,
        retries: 0,
        // The token was read above, while the user was certainly the one of this queue.
        token: null,
        headers: { Authorization: token ? `Bearer ${token}` : undefined },
      })
      const { inserted, updated, versions = {} } = data as BatchAnswer
      const [row] = setVersions([...inserted, ...updated], Object.values(versions).flat())
      this.#end(write, ({ answer }) => answer.resolve(row))
    } catch (cause) {
      const error = cause as PlinthError
      if (error.status === 401 && token) await credentials?.renew(token)
      const isSignedOut = error.status === 401 && !token && !options.serviceKey
      if (error.slug !== 'outcome-unknown' && !isRefusal(error) && !isSignedOut) throw error
      this.#reject(write, error)
    }
    this.#hasAnswered = true
    this.#failures = 0
    await this.#remove(write)
  }

  /** What is to be done when the write is stored no longer. */
  #end({ idempotencyKey }: StoredWrite, end: (entry: Entry) => void): void {
    const entry = this.#entries.get(idempotencyKey)
    if (entry) entry.end = () => end(entry)
  }

  #reject(write: StoredWrite, error: PlinthError): RejectedWrite {
    const { table, operation, id, data } = write
    const rejected = { table, operation, id, ...(data && { data }), error }
    this.#end(write, ({ answer, isAccepted }) => {
      answer.reject(error)
      if (isAccepted) this.#events.reject(rejected)
    })
    return rejected
  }

  #remove({ idempotencyKey }: StoredWrite): Promise<void> {
    return this.change((writes) => writes.filter((other) => other.idempotencyKey !== idempotencyKey))
  }

  /** Ends this queue, because another user is signed in. What is stored stays. */
  leave(): void {
    this.#isLeft = true
    clearTimeout(this.#timer)
    for (const { answer, accepted } of this.#entries.values()) {
      accepted.resolve()
      answer.reject(failure('aborted'))
    }
    this.#waiting = []
  }
}
