/**
 * A live list: subscribes, lists, applies what has changed since, and then follows the changes for as long as it is
 * used. After a disconnect it resumes; where the server no longer knows the changes, it lists again.
 */

import { backoffMs, delay } from '../core/deadline.ts'
import { deferred } from '../core/deferred.ts'
import type { PlinthError } from '../core/error.ts'
import { later } from '../core/later.ts'
import { createListeners } from '../core/listeners.ts'
import type { Message } from '../core/socket.ts'
import type { ListCache } from '../offline/list-cache.ts'
import { Query, type QueryParts, type Row } from '../records/query.ts'
import { findVersion, setVersion } from '../records/versions.ts'
import type { Observer, TableWrites } from './optimistic.ts'
import { orderOf } from './order.ts'
import type { Change, Subscription, Subscriptions } from './subscriptions.ts'
import { createWindow, spareRows, type Window } from './window.ts'

export type Status = 'loading' | 'live' | 'stale' | 'closed'

export interface Snapshot {
  readonly items: readonly Row[]
  readonly status: Status
  readonly error?: PlinthError
  /** Optimistic writes that the list shows and the server has not confirmed yet. */
  readonly pending: number
}

/** Rows of a list without a limit, the server's largest page, and the largest limit. */
const limitDefault = 100
const limitMax = 1000
/**
 * How long a list without users stays subscribed and shared, in milliseconds: components unmount and mount again, and
 * render before they subscribe.
 */
const lingerMs = 1_000

/** A short name of a query, so that equal queries of all clients share one subscription on the server. */
export function tagOf(text: string): string {
  // FNV-1a with 64 bits.
  let hash = 0xcbf29ce484222325n
  for (const char of text) hash = BigInt.asUintN(64, (hash ^ BigInt(char.codePointAt(0) as number)) * 0x100000001b3n)
  return hash.toString(36)
}

/** What the lists of a client share. */
export interface Shared {
  readonly subscriptions: Subscriptions
  /** The lists in use by key; equal queries share one. */
  readonly active: Map<string, LiveQuery>
  /** The optimistic writes of the table at a path. */
  writesOf(path: string): TableWrites
}

export class LiveQuery {
  readonly key: string
  readonly #query: Query
  readonly #parts: QueryParts
  readonly #limit: number
  readonly #shared: Shared
  readonly #writes: TableWrites
  readonly #listeners = createListeners()
  readonly #subscription: Subscription
  readonly #window: Window
  readonly #observer: Observer
  readonly #projections = new WeakMap<Row, Row>()
  #cleanUp: (() => void) | undefined
  #unwatch: (() => void) | undefined
  /** The current reading of the list, and what has changed since it began; an older one is ignored. */
  #listing: { changes: Change[] } | undefined
  #users = 0
  #lingering: ReturnType<typeof setTimeout> | undefined
  #status: Status = 'loading'
  #error: PlinthError | undefined
  #snapshot: Snapshot | undefined
  #first = deferred<readonly Row[]>()
  /** Whether the rows are those of the server, up to the changes that its cursor resumes. */
  #isListed = false
  #isConnected = false

  constructor(query: Query, key: string, shared: Shared) {
    this.key = key
    this.#query = query
    this.#shared = shared
    this.#writes = shared.writesOf(query.source.path)
    const { filter, orFilter, sort, limit = limitDefault } = query.parts
    this.#limit = Math.min(limit, limitMax)
    // Rows are kept with what sorts and filters need, and shown with the selected fields.
    this.#parts = { filter, orFilter, sort, fields: [], limit: this.#limit + spareRows }
    this.#window = createWindow(orderOf(sort), this.#limit)
    this.#observer = { window: this.#window, parts: this.#parts, changed: () => this.#changed() }
    const { channel } = query.source
    const conditions = [...filter, ...orFilter].length > 0 && tagOf(JSON.stringify([filter, orFilter]))
    this.#subscription = {
      channel: conditions ? `${channel}#${conditions}` : channel,
      conditions: { filters: filter, orFilters: orFilter },
      onMessage: (message) => this.#receive(message),
      onDown: () => {
        this.#isConnected = false
        if (this.#status === 'live') this.#setStatus('stale')
      },
      onRefused: (error) => this.#refuse(error),
    }
    shared.active.set(key, this)
    this.#linger()
  }

  get current(): Snapshot {
    this.#snapshot ??= this.#takeSnapshot()
    return this.#snapshot
  }

  /** The first complete list. Rejects if the server refuses it; while the server is away, it waits. */
  get ready(): Promise<readonly Row[]> {
    const leave = this.subscribe(() => undefined)
    const { promise } = this.#first
    promise.then(leave, leave)
    return promise
  }

  subscribe(listener: () => void): () => void {
    const remove = this.#listeners.add(listener)
    this.#users++
    this.#unwatch ??= this.#query.source.core.identity.add(() => this.#startOver())
    if (this.#status !== 'closed') this.#start()
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      remove()
      if (--this.#users === 0) this.#linger()
    }
  }

  /**
   * Ends the list after a while if it is not used: without a subscription, nothing says when its rows change or must no
   * longer be shown. A refused list is only shared no longer, so that other users read it again.
   */
  #linger(): void {
    clearTimeout(this.#lingering)
    this.#lingering = later(() => {
      const isUsed = this.#users > 0
      if (isUsed && this.#status !== 'closed') return
      const { active } = this.#shared
      if (active.get(this.key) === this) active.delete(this.key)
      if (isUsed) return
      this.#unwatch?.()
      this.#unwatch = undefined
      this.#stop()
      if (this.#status !== 'closed') this.#reset()
    }, lingerMs)
  }

  /** Of the feature `persist`, where it is used. */
  get #cache(): ListCache | undefined {
    return this.#query.source.core.parts.cache as ListCache | undefined
  }

  /** Shows the rows of the last visit until the list is read. */
  async #restore(): Promise<void> {
    const saved = await this.#cache?.get(this.key)
    if (!saved || !this.#cleanUp || this.#status !== 'loading') return
    this.#window.reset(saved.rows, saved.isComplete)
    this.#setStatus('stale')
  }

  #start(): void {
    if (this.#status === 'loading') void this.#restore()
    if (this.#cleanUp) return
    const { active, subscriptions } = this.#shared
    active.set(this.key, this)
    const unwatchWrites = this.#writes.watch(this.#observer)
    this.#cleanUp = () => {
      unwatchWrites()
      subscriptions.remove(this.#subscription)
    }
    subscriptions.add(this.#subscription)
  }

  #stop(): void {
    this.#cleanUp?.()
    this.#cleanUp = undefined
    this.#forgetRows()
  }

  #forgetRows(): void {
    this.#listing = undefined
    this.#isListed = false
    this.#window.reset([], true)
  }

  #reset(): void {
    const first = this.#first
    if (this.#status !== 'loading') this.#first = deferred()
    // Rows of the last visit do not resolve `ready`, so it may still be awaited.
    if (first !== this.#first) this.#first.promise.then(first.resolve, first.reject)
    this.#error = undefined
    this.#setStatus('loading')
  }

  /** Another user is signed in: shows nothing of the previous one, and asks again where that one was refused. */
  #startOver(): void {
    this.#forgetRows()
    this.#reset()
    this.#start()
  }

  #refuse(error: PlinthError): void {
    this.#stop()
    this.#linger()
    this.#error = error
    this.#first.reject(error)
    this.#cache?.remove(this.key)
    this.#setStatus('closed')
  }

  #receive(message: Message): void {
    const { type } = message
    if (type === 'db_change') this.#apply([message as Change])
    if (type === 'batch_changes') this.#apply(message.changes as Change[])
    if (type === 'subscribed') this.#isConnected = true
    if (type === 'resync' || (type === 'subscribed' && !(message.recovered && this.#isListed))) void this.#list()
    else if (type === 'subscribed' && !this.#listing) this.#setLive([])
  }

  /** Reads the list, until that succeeds or is refused. What changes meanwhile is applied to it afterwards. */
  async #list(isRefill = false): Promise<void> {
    const listing = { changes: [] as Change[] }
    this.#listing = listing
    if (this.#status === 'live' && !isRefill) this.#setStatus('stale')
    for (let attempt = 0; this.#listing === listing; attempt++)
      try {
        listing.changes = []
        const { rows, isComplete } = await this.#readRows()
        if (this.#listing !== listing) return
        this.#listing = undefined
        this.#isListed = true
        this.#error = undefined
        this.#window.reset(rows, isComplete)
        this.#setLive(listing.changes)
        this.#first.resolve(this.current.items)
      } catch (cause) {
        if (this.#listing !== listing) return
        const { retryable, slug, retryAfterMs = backoffMs(attempt) } = cause as PlinthError
        if (!retryable && slug !== 'invalid-answer') return this.#refuse(cause as PlinthError)
        await delay(retryAfterMs)
      }
  }

  /** The rows up to the limit, in several requests where the server's byte budget ends a page early. */
  async #readRows(): Promise<{ rows: readonly Row[]; isComplete: boolean }> {
    const wanted = this.#parts.limit as number
    const query = new Query(this.#query.source, this.#parts)
    const rows: Row[] = []
    for (let after = ''; ; ) {
      const page = await query.limit(Math.min(wanted - rows.length, limitMax)).page({ after })
      rows.push(...page.items)
      const isComplete = !page.hasMore && !page.truncated
      if (isComplete || rows.length >= wanted || page.cursor === null) return { rows, isComplete }
      after = page.cursor as string
    }
  }

  #setLive(changes: readonly Change[]): void {
    this.#status = this.#isConnected ? 'live' : 'stale'
    this.#apply(changes)
  }

  #apply(changes: readonly Change[]): void {
    this.#listing?.changes.push(...changes)
    for (const { changeType, docId, data, version } of changes) {
      if (changeType === 'removed' || !data) this.#window.remove(docId, version)
      else this.#window.put(setVersion(data, version))
      this.#writes.confirm(this.#observer, docId, version)
    }
    if (this.#window.needsRefill && !this.#listing && this.#status === 'live') void this.#list(true)
    this.#cache?.save(this.key, () => (this.#isListed ? this.#window : undefined))
    this.#changed()
  }

  #setStatus(status: Status): void {
    this.#status = status
    this.#changed()
  }

  #changed(): void {
    this.#snapshot = undefined
    this.#listeners.emit()
  }

  #takeSnapshot(): Snapshot {
    const { rows, pending } = this.#writes.show(this.#observer)
    const shown = rows.slice(0, this.#limit)
    const items = this.#query.parts.fields.length > 0 ? shown.map((row) => this.#project(row)) : shown
    const snapshot = { items, status: this.#status, pending }
    return this.#error ? { ...snapshot, error: this.#error } : snapshot
  }

  #project(row: Row): Row {
    const known = this.#projections.get(row)
    if (known) return known
    const fields = this.#query.parts.fields.map((field) => [field, row[field]])
    const projected = setVersion(Object.fromEntries(fields) as Row, findVersion(row))
    this.#projections.set(row, projected)
    return projected
  }
}
