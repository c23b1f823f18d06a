/**
 * The writes of one user that the server has not answered, kept on the device until it has.
 *
 * Each is sent under the idempotency key that it got when it was queued, so that sending it again after a crash, or
 * from two tabs, is one write. They are sent one after the other, in the order in which they were made.
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

/** Writes that a queue may have, and the characters of their JSON. */
const writesMax = 1_000
const charsMax = 5 * 1024 * 1024
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

/** Someone who waits for a write: the lists that show it, and its caller. */
export interface Waiter {
  /** Of the server. Rejects where the write is rolled back. */
  readonly answer: Deferred<Row | undefined>
  /** Resolves with the answer, or as soon as the write is stored while the server is away. */
  readonly accepted: Deferred<unknown>
}

interface Entry {
  readonly key: string
  text: string
  write: StoredWrite
  readonly waiters: Waiter[]
  /** Whether a caller knows the write as accepted, so that a refusal is news of its own. */
  isAccepted: boolean
  /** Whether the server has answered, and the stored write is being removed. */
  isDone?: boolean
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
  /** The writes have changed: those that are stored, or only what this tab knows of them. */
  changed(isStored: boolean): void
  /** Whether the user of this queue is still signed in. */
  isCurrent(): boolean
}

function parseWrite(text: string): StoredWrite | null {
  try {
    const write = JSON.parse(text) as StoredWrite
    const isValid = /^\/api\/db\//.test(write.path) && /^(insert|update|delete)$/.test(write.operation)
    return isValid && write.id && write.idempotencyKey ? write : null
  } catch {
    return null
  }
}

const bodyOf = ({ operation, id, data, ifMatch }: StoredWrite): object => {
  if (operation === 'insert') return { inserts: [data] }
  return operation === 'update' ? { updates: [{ id, data, ifMatch }] } : { deletes: [ifMatch ? { id, ifMatch } : id] }
}

/** Whether the server refuses the write itself. The page of a captive portal does not. */
const isRefusal = ({ status, slug }: PlinthError): boolean =>
  status >= 400 && status < 500 && ![401, 408, 429].includes(status) && slug !== 'invalid-answer'

export class UserQueue {
  readonly #core: Core
  readonly #store: Store
  readonly #events: QueueEvents
  readonly #prefix: string
  #entries: Entry[] = []
  #lastTime = 0
  /** Attempts that failed since the last answer; before the first one the server is not known to be there. */
  #failures = 0
  #hasAnswered = false
  #adding: Promise<unknown> = Promise.resolve()
  #flushing: Promise<void> | undefined
  #loading: Promise<void> | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #isLeft = false

  constructor(core: Core, store: Store, user: string, events: QueueEvents) {
    this.#core = core
    this.#store = store
    this.#events = events
    this.#prefix = `write|${encodeURIComponent(user)}|`
  }

  get size(): number {
    return this.#entries.length
  }

  /** Takes over what is stored: writes of an earlier visit, and what other tabs have added, merged or sent. */
  load(): Promise<void> {
    if (!this.#loading) {
      // After what is being added, which may be stored already and not be an entry yet.
      this.#loading = this.#adding.then(() => this.#load())
      this.#adding = this.#loading.catch(() => undefined)
    }
    return this.#loading
  }

  async #load(): Promise<void> {
    // What other tabs store from here on is another load.
    this.#loading = undefined
    const before = new Map(this.#entries.map((entry) => [entry.key, entry]))
    const stored = new Map(await this.#store.list(this.#prefix))
    if (this.#isLeft) return
    for (const entry of before.values()) if (!stored.has(entry.key) && !entry.isDone) this.#settle(entry)
    for (const [key, text] of stored) {
      const known = before.get(key)
      const write = parseWrite(text)
      this.#lastTime = Math.max(this.#lastTime, Number.parseInt(key.slice(this.#prefix.length), 36) || 0)
      if (!write) void this.#store.set(key, null)
      else if (known) Object.assign(known, { text, write })
      else {
        const waiter = { answer: deferred<Row | undefined>(), accepted: deferred<unknown>() }
        this.#entries.push({ key, text, write, waiters: [waiter], isAccepted: true })
        this.#events.show(write, waiter.answer.promise)
      }
    }
    this.#entries.sort((left, right) => (left.key < right.key ? -1 : 1))
    this.#events.changed(false)
  }

  /** Stores a write, and sends it after those before it. */
  add(write: RecordWrite, { idempotencyKey, ifMatch }: WriteOptions, waiter: Waiter): void {
    this.#adding = this.#adding
      .then(() => this.#add({ ...write, idempotencyKey: idempotencyKey ?? randomId(), ifMatch }, waiter))
      .catch(waiter.answer.reject)
  }

  async #add(write: StoredWrite, waiter: Waiter): Promise<void> {
    const entry = (await this.#merge(write)) ?? (await this.#append(write))
    // Stored for the user who has made it, who is not the one signed in now.
    if (this.#isLeft) return leave(waiter)
    if (!this.#entries.includes(entry)) this.#entries.push(entry)
    entry.waiters.push(waiter)
    this.#events.changed(true)
    // While the server is away, the next attempt has its time.
    if (this.#failures > 0) accept(entry)
    else void this.flush().catch(() => undefined)
  }

  /** Makes the last write of the queue one with this one, where both are updates of one record and it was not sent. */
  async #merge(write: StoredWrite): Promise<Entry | undefined> {
    const last = this.#entries.at(-1)
    const isMergeable =
      write.operation === 'update' &&
      (['operation', 'path', 'id'] as const).every((member) => write[member] === last?.write[member])
    if (!isMergeable || !last || last.write.sentAt || last.write.ifMatch || write.ifMatch) return undefined
    const merged = mergePatches(last.write.data ?? {}, write.data ?? {})
    if (!merged) return undefined
    const next = { ...last.write, data: merged }
    const text = JSON.stringify(next)
    this.#checkRoom(text.length - last.text.length, 0)
    // Fails where the write is sent at this moment.
    if (!(await this.#store.set(last.key, text, last.text))) return undefined
    Object.assign(last, { text, write: next })
    return last
  }

  async #append(write: StoredWrite): Promise<Entry> {
    const text = JSON.stringify(write)
    this.#checkRoom(text.length, 1)
    this.#lastTime = Math.max(Date.now(), this.#lastTime + 1)
    // Times of this century have eight digits.
    const key = `${this.#prefix}${this.#lastTime.toString(36)}|${randomId()}`
    try {
      await this.#store.set(key, text)
    } catch (cause) {
      throw failure('queue-full', undefined, cause)
    }
    return { key, text, write, waiters: [], isAccepted: false }
  }

  #checkRoom(chars: number, writes: number): void {
    const used = this.#entries.reduce((sum, { text }) => sum + text.length, 0)
    if (this.#entries.length + writes > writesMax || used + chars > charsMax) throw failure('queue-full')
  }

  /** Sends what waits. Concurrent calls share one run. */
  flush(): Promise<void> {
    this.#flushing ??= this.#flush().finally(() => {
      this.#flushing = undefined
    })
    return this.#flushing
  }

  #exclusively<Result>(work: () => Promise<Result>): Promise<Result> {
    return exclusively(this.#prefix + this.#core.url, lockWaitMs, work)
  }

  /** Gives up the first write, so that those behind it are sent. Resolves with it; null where nothing waits. */
  async discard(): Promise<RejectedWrite | null> {
    // The attempt under way decides which one is the first.
    await this.#flushing?.catch(() => undefined)
    const discarded = await this.#exclusively(async () => {
      const [entry] = this.#entries
      if (!entry) return null
      await this.#remove(entry)
      return this.#reject(entry, failure('discarded'))
    })
    this.#events.changed(true)
    void this.flush().catch(() => undefined)
    return discarded
  }

  async #flush(): Promise<void> {
    clearTimeout(this.#timer)
    try {
      while (this.#entries.length > 0 && !this.#isLeft) await this.#exclusively(() => this.#sendFirst())
    } catch (error) {
      if (!this.#isLeft) {
        const { retryAfterMs = backoffMs(this.#failures) } = error as PlinthError
        this.#failures++
        for (const entry of this.#entries) accept(entry)
        this.#timer = setTimeout(() => void this.flush().catch(() => undefined), retryAfterMs)
      }
      throw error
    }
  }

  async #sendFirst(): Promise<void> {
    const [entry] = this.#entries
    if (!entry || this.#isLeft) return
    const { credentials } = this.#core
    // A write that was sent can be repeated as long as the server knows its key, so none is sent into the void.
    if (!this.#hasAnswered || this.#failures > 0) await this.#core.send('GET', '/api/health', { retries: 0 })
    const token = await this.#core.accessToken()
    const now = Date.now()
    const write = { ...entry.write, sentAt: entry.write.sentAt ?? now }
    const text = JSON.stringify(write)
    // Another tab has sent it, or has merged a later write with it.
    if (!(await this.#store.set(entry.key, text, entry.text))) return this.load()
    Object.assign(entry, { text, write })
    if (!this.#events.isCurrent()) throw failure('aborted')
    try {
      if (now - write.sentAt > keyLifetimeMs) throw failure('outcome-unknown')
      const { data } = await this.#core.send('POST', `${write.path}/batch`, {
        body: bodyOf(write),
        query: { versions: '1' },
        idempotencyKey: write.idempotencyKey,
        retries: 0,
        // The token was read above, while the user was certainly the one of this queue.
        token: null,
        headers: { Authorization: token ? `Bearer ${token}` : undefined },
      })
      const { inserted, updated, versions = {} } = data as BatchAnswer
      const [row] = setVersions([...inserted, ...updated], Object.values(versions).flat())
      await this.#remove(entry)
      this.#settle(entry, row)
    } catch (cause) {
      const error = cause as PlinthError
      if (error.status === 401 && token) await credentials?.renew(token)
      const isSignedOut = error.status === 401 && !token && !this.#core.options.serviceKey
      if (error.slug !== 'outcome-unknown' && !isRefusal(error) && !isSignedOut) throw error
      await this.#remove(entry)
      this.#reject(entry, error)
    }
    this.#hasAnswered = true
    this.#failures = 0
    this.#events.changed(true)
  }

  /** A write that stays stored is sent again at the next start, under the same key. */
  async #remove(entry: Entry): Promise<void> {
    entry.isDone = true
    await this.#store.set(entry.key, null).catch(() => undefined)
  }

  #drop(entry: Entry): void {
    this.#entries = this.#entries.filter((other) => other !== entry)
  }

  #settle(entry: Entry, row?: Row): void {
    this.#drop(entry)
    for (const { answer, accepted } of entry.waiters) {
      answer.resolve(row)
      accepted.resolve(row)
    }
  }

  #reject(entry: Entry, error: PlinthError): RejectedWrite {
    const { table, operation, id, data } = entry.write
    const rejected = { table, operation, id, ...(data && { data }), error }
    // Not a second time, where another attempt was under way.
    const isNews = entry.isAccepted && this.#entries.includes(entry)
    this.#drop(entry)
    for (const { answer } of entry.waiters) answer.reject(error)
    if (isNews) this.#events.reject(rejected)
    return rejected
  }

  /** Ends this queue, because another user is signed in. What is stored stays. */
  leave(): void {
    this.#isLeft = true
    clearTimeout(this.#timer)
    for (const { waiters } of this.#entries) for (const waiter of waiters) leave(waiter)
    this.#entries = []
  }
}

function accept(entry: Entry): void {
  const { id, data, operation } = entry.write
  entry.isAccepted = true
  for (const { accepted } of entry.waiters) accepted.resolve(operation === 'delete' ? undefined : { id, ...data })
}

/** The write is stored, and its user's lists are no longer shown. */
function leave({ answer, accepted }: Waiter): void {
  accepted.resolve(undefined)
  answer.reject(failure('aborted'))
}
