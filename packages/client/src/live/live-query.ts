/**
 * A live list or record: subscribes, lists, applies what has changed since, and then follows the changes for as long as
 * it is used. After a disconnect it resumes; where the server no longer knows the changes, it lists again.
 */

import { backoffMs, delay } from '../core/deadline.ts'
import type { PlinthError } from '../core/error.ts'
import { later } from '../core/later.ts'
import { createListeners } from '../core/listeners.ts'
import type { Message } from '../core/socket.ts'
import { Query, type QueryParts, type Row } from '../records/query.ts'
import { findVersion, setVersion } from '../records/versions.ts'
import type { Observer, Writes } from './optimistic.ts'
import { orderOf } from './order.ts'
import type { Change, Subscribe, Subscriber } from './subscriptions.ts'
import { spareRows, Window } from './window.ts'

export type Status = 'loading' | 'live' | 'stale' | 'closed'

export interface Snapshot {
  /** Of a list. */
  readonly items?: readonly Row[]
  /** Optimistic writes that the list shows and the server has not confirmed yet. */
  readonly pending?: number
  /** Of a record. */
  readonly record?: Row | null
  readonly status: Status
  readonly error?: PlinthError | undefined
}

/** Rows of a list without a limit, and the largest limit. */
const limitDefault = 100
const limitMax = 1000
/**
 * How long a list without users stays subscribed and shared, in milliseconds: components unmount and mount again, and
 * render before they subscribe.
 */
const lingerMs = 1_000

/** A short name of a query, so that equal queries of all clients share one subscription on the server. */
function tagOf(text: string): string {
  let hash = 0
  // Below 10 ** 13, times 257, it is an exact number.
  for (const char of text) hash = (hash * 257 + (char.codePointAt(0) as number)) % 1e13
  return hash.toString(36)
}

/** What the lists of a client share. */
export interface Shared {
  readonly subscribe: Subscribe
  /** The lists that have users, or had until a moment ago. */
  readonly lists: Set<LiveQuery>
  readonly writes: Writes
}

export class LiveQuery implements Observer, Subscriber {
  readonly path: string
  readonly request: Subscriber['request']
  /** Of the rows that are kept: with what sorts and filters need, and more than are shown. */
  readonly parts: QueryParts
  readonly window: Window
  readonly key: string
  readonly #query: Query
  readonly #isRecord: boolean
  readonly #shared: Shared
  readonly #listeners = createListeners()
  readonly #projections = new WeakMap<Row, Row>()
  #unsubscribe: (() => void) | undefined
  /** Aborts the request by which the list is being read. */
  #reading = new AbortController()
  /** What has changed since the list is being read. */
  #missed: Change[] | undefined
  #users = 0
  #lingering: ReturnType<typeof setTimeout> | undefined
  /** Why the server refuses the list. */
  #error: PlinthError | undefined
  #snapshot: Snapshot | undefined
  #ready: Promise<unknown> | undefined
  /** Whether there are rows to show: those of the last visit, or of the server. */
  #hasRows = false
  /** Whether the rows are those of the server, up to the changes that its cursor resumes; a refill may be under way. */
  #isListed = false
  #isConnected = false

  constructor(query: Query, isRecord: boolean, key: string, shared: Shared) {
    const { source, parts } = query
    const { filter, orFilter, sort, limit = limitDefault } = parts
    this.#query = query
    this.#isRecord = isRecord
    this.key = key
    this.#shared = shared
    this.window = new Window(orderOf(parts), Math.min(limit, limitMax))
    this.parts = { filter, orFilter, sort, limit: this.window.limit + spareRows }
    this.path = source.path
    this.request = {
      type: 'subscribe',
      channel: `${source.channel}#${tagOf(key)}`,
      filter,
      orFilter,
    }
    shared.lists.add(this)
    this.#linger()
  }

  get current(): Snapshot {
    if (this.#snapshot) return this.#snapshot
    const { rows, pending } = this.#shared.writes.rowsOf(this)
    const { fields } = this.#query.parts
    const shown = rows.slice(0, this.window.limit)
    const items = fields ? shown.map((row) => this.#project(row, fields)) : shown
    this.#snapshot = {
      ...(this.#isRecord ? { record: items[0] ?? null } : { items, pending }),
      status: this.status,
      error: this.#error,
    }
    return this.#snapshot
  }

  /** The first complete list. Rejects if the server refuses it; while the server is away, it waits. */
  get ready(): Promise<unknown> {
    this.#ready ??= new Promise((resolve, reject) => {
      let leave: (() => void) | undefined
      const finish = (): void => {
        const { items, record = items } = this.current
        if (this.#error) reject(this.#error)
        else if (this.#isListed) resolve(record)
        else return
        leave?.()
      }
      // It may be refused at once.
      leave = this.subscribe(finish)
      finish()
    })
    // The error is also visible in the state.
    this.#ready.catch(() => undefined)
    return this.#ready
  }

  subscribe(listener: () => void): () => void {
    const remove = this.#listeners.add(listener)
    this.#shared.lists.add(this)
    if (this.#users++ === 0) {
      // The first user of a refused list tries again.
      if (this.#error) this.reset()
      this.start()
    }
    return () => {
      if (remove() && --this.#users === 0) this.#linger()
    }
  }

  /**
   * Ends the list after a while if it is not used: without a subscription, nothing says when its rows change or must no
   * longer be shown. One that is still being read ends at once, so that queries which change faster than they are
   * answered leave no requests behind. A refused list stays as it is, for those who look at its error.
   */
  #linger(): void {
    clearTimeout(this.#lingering)
    this.#lingering = later(
      () => {
        if (this.#users === 0 && this.#shared.lists.delete(this) && !this.#error) this.reset()
      },
      this.#unsubscribe && !this.#isListed ? 0 : lingerMs,
    )
  }

  /** The feature `persist`, where it is used, keeps the rows, and gives those of the last visit. */
  #keep(): void {
    const core = this.#query.source.core as { parts: { cache?: (list: LiveQuery) => void } }
    core.parts.cache?.(this)
  }

  /** Shows the rows of the last visit until the list is read. */
  restore(rows: readonly Row[], isComplete: boolean): void {
    if (!this.#unsubscribe || this.#hasRows) return
    this.window.reset(rows, isComplete)
    this.#hasRows = true
    this.changed()
  }

  start(): void {
    this.#keep()
    try {
      this.#unsubscribe ??= this.#shared.subscribe(this)
    } catch (error) {
      this.reset(error as PlinthError)
    }
  }

  /** Ends the subscription, and shows no rows until it starts again. With an error, it is refused. */
  reset(error?: PlinthError): void {
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
    this.#reading.abort()
    this.#isConnected = this.#isListed = this.#hasRows = false
    this.request.since = undefined
    this.window.reset([], true)
    this.#error = error
    if (!error) this.#ready = undefined
    this.changed()
  }

  receive(message: Message): void {
    const { type } = message
    this.#isConnected = type !== 'down'
    if (type === 'resync' || (type === 'subscribed' && !(message.recovered && this.#isListed))) {
      this.#isListed = false
      void this.#list()
    } else this.#apply((type === 'db_change' ? [message] : (message.changes ?? [])) as Change[])
  }

  /** Reads the list, until that succeeds or is refused. What changes meanwhile is applied to it afterwards. */
  async #list(): Promise<void> {
    this.#reading.abort()
    this.#reading = new AbortController()
    const { signal } = this.#reading
    const query = new Query(this.#query.source, this.parts)
    const missed: Change[] = []
    this.#missed = missed
    this.changed()
    for (let attempt = 0; ; attempt++)
      try {
        const rows: Row[] = []
        for await (const { items } of query.pages({ signal })) rows.push(...items)
        if (signal.aborted) return
        this.#missed = undefined
        this.#isListed = this.#hasRows = true
        this.window.reset(rows, rows.length < (this.parts.limit as number))
        return this.#apply(missed)
      } catch (cause) {
        if (signal.aborted) return
        const { retryable, slug, retryAfterMs = backoffMs(attempt) } = cause as PlinthError
        if (!retryable && slug !== 'invalid-answer') return this.reset(cause as PlinthError)
        await delay(retryAfterMs, signal)
      }
  }

  #apply(changes: readonly Change[]): void {
    const { window } = this
    this.#missed?.push(...changes)
    for (const { docId, data, version } of changes) {
      window.set(docId, data && setVersion(data, version), version)
      this.#shared.writes.confirm(this, docId, version)
    }
    // Rows that belong to the list may be missing.
    if (this.status === 'live' && !this.#missed && window.bound && window.rows.length < window.limit) void this.#list()
    this.changed()
  }

  changed(): void {
    this.#snapshot = undefined
    this.#listeners.emit()
    this.#keep()
  }

  get status(): Status {
    if (this.#error) return 'closed'
    if (!this.#hasRows) return 'loading'
    return this.#isListed && this.#isConnected ? 'live' : 'stale'
  }

  #project(row: Row, fields: readonly string[]): Row {
    let projected = this.#projections.get(row)
    if (!projected) {
      projected = setVersion(Object.fromEntries(fields.map((field) => [field, row[field]])) as Row, findVersion(row))
      this.#projections.set(row, projected)
    }
    return projected
  }
}
