/**
 * A live list: subscribes, lists, applies what has changed since, and then follows the changes for as long as it is
 * used. After a disconnect it resumes; where the server no longer knows the changes, it lists again.
 */
import type { Core } from '../core/core.ts'
import { isPlinthError, type PlinthError } from '../core/error.ts'
import { createListeners } from '../core/listeners.ts'
import { backoffMs } from '../core/transport.ts'
import { parametersOf, type Query, type QueryParts, type Row, readPage } from '../records/query.ts'
import { findVersion, setVersion } from '../records/versions.ts'
import type { Observer, Optimistic } from './optimistic.ts'
import { orderOf } from './order.ts'
import type { Change, Subscription, Subscriptions } from './subscriptions.ts'
import { spareRows, Window } from './window.ts'

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
/** How long a list without users stays subscribed, in milliseconds: components unmount and mount again. */
const lingerMs = 1_000

/** A short name of a query, so that equal queries of all clients share one subscription on the server. */
export function tagOf(text: string): string {
  let hash = 0x811c9dc5
  let second = 0
  for (let at = 0; at < text.length; at++) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
    second = Math.imul(second, 31) + text.charCodeAt(at)
  }
  return (hash >>> 0).toString(36) + (second >>> 0).toString(36)
}

export class LiveQuery {
  readonly key: string
  readonly #core: Core
  readonly #query: Query
  readonly #parts: QueryParts
  readonly #limit: number
  readonly #subscriptions: Subscriptions
  readonly #optimistic: Optimistic
  readonly #active: Map<string, LiveQuery>
  readonly #listeners = createListeners()
  readonly #subscription: Subscription
  #cleanUp: (() => void) | undefined
  #unwatch: (() => void) | null = null
  readonly #window: Window
  readonly #observer: Observer
  /** Changes since a list request was sent; null while none is under way. */
  #buffer: Change[] | null = null
  /** The current list request; an older one is ignored. */
  #listing: AbortController | null = null
  #users = 0
  #isActive = false
  #status: Status = 'loading'
  #error: PlinthError | undefined
  #snapshot: Snapshot | null = null
  #first = deferred<readonly Row[]>()
  readonly #isProjected: boolean
  readonly #projections = new WeakMap<Row, Row>()

  /** `active`: the lists in use by key; equal queries share one. */
  constructor(
    query: Query,
    key: string,
    {
      subscriptions,
      optimistic,
      active,
    }: { subscriptions: Subscriptions; optimistic: Optimistic; active: Map<string, LiveQuery> },
  ) {
    this.key = key
    this.#query = query
    this.#core = query.source.core
    this.#subscriptions = subscriptions
    this.#optimistic = optimistic
    this.#active = active
    const { filter, orFilter, sort, fields, limit = limitDefault } = query.parts
    this.#limit = Math.min(limit, limitMax)
    // Rows are kept with what sorts and filters need, and shown with the selected fields.
    this.#parts = { filter, orFilter, sort, fields: [], limit: this.#limit + spareRows }
    this.#isProjected = fields.length > 0
    this.#window = new Window(orderOf(this.#parts), this.#limit)
    this.#observer = { window: this.#window, parts: this.#parts, changed: () => this.#changed() }
    const tag = tagOf(JSON.stringify([filter, orFilter]))
    this.#subscription = {
      channel: filter.length + orFilter.length > 0 ? `${query.source.channel}#${tag}` : query.source.channel,
      filters: filter,
      orFilters: orFilter,
      onSubscribed: (recovered) => {
        if (!recovered) void this.#list()
        else if (!this.#listing) this.#setStatus('live')
      },
      onChanges: (changes) => this.#apply(changes),
      onResync: () => void this.#list(),
      onDown: () => {
        if (this.#status === 'live') this.#setStatus('stale')
      },
      onRefused: (error) => this.#refuse(error),
    }
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
    if (this.#users++ === 0) this.#unwatch ??= this.#core.identity.add(() => this.#startOver())
    if (this.#status !== 'closed') this.#start()
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      remove()
      if (--this.#users === 0)
        setTimeout(() => {
          if (this.#users > 0) return
          this.#stop()
          this.#unwatch?.()
          this.#unwatch = null
        }, lingerMs)
    }
  }

  #start(): void {
    if (this.#isActive) return
    this.#isActive = true
    this.#active.set(this.key, this)
    this.#cleanUp = this.#optimistic.watch(this.#query.source.path, this.#observer)
    this.#subscriptions.add(this.#subscription)
  }

  #stop(): void {
    if (!this.#isActive) return
    this.#isActive = false
    if (this.#active.get(this.key) === this) this.#active.delete(this.key)
    this.#cleanUp?.()
    this.#subscriptions.remove(this.#subscription)
    this.#listing?.abort()
    this.#listing = null
    this.#buffer = null
    if (this.#status !== 'closed') this.#status = this.#status === 'loading' ? 'loading' : 'stale'
    this.#snapshot = null
  }

  /** Another user is signed in: shows nothing of the previous one, and asks again where that one was refused. */
  #startOver(): void {
    this.#listing?.abort()
    this.#listing = null
    this.#buffer = null
    this.#window.reset([], true)
    if (this.#status === 'closed') this.#first = deferred()
    this.#error = undefined
    this.#setStatus('loading')
    this.#start()
  }

  #refuse(error: PlinthError): void {
    this.#stop()
    this.#window.reset([], true)
    this.#error = error
    this.#first.reject(error)
    this.#setStatus('closed')
  }

  /** Reads the list, until that succeeds or is refused. What changes meanwhile is applied to it afterwards. */
  async #list(isRefill = false): Promise<void> {
    this.#listing?.abort()
    const listing = new AbortController()
    this.#listing = listing
    if (this.#status === 'live' && !isRefill) this.#setStatus('stale')
    for (let attempt = 0; this.#listing === listing; attempt++) {
      this.#buffer = []
      try {
        const { rows, isComplete } = await this.#readRows(listing.signal)
        if (this.#listing !== listing) return
        const changes = this.#buffer
        this.#listing = null
        this.#buffer = null
        this.#window.reset(rows, isComplete)
        this.#error = undefined
        this.#status = 'live'
        this.#apply(changes)
        this.#first.resolve(this.current.items)
        return
      } catch (error) {
        if (this.#listing !== listing || !isPlinthError(error)) return
        if (!error.retryable && error.slug !== 'invalid-answer') return this.#refuse(error)
        await new Promise((resolve) => setTimeout(resolve, error.retryAfterMs ?? backoffMs(attempt)))
      }
    }
  }

  /** The rows up to the limit, in several requests where the server's byte budget ends a page early. */
  async #readRows(signal: AbortSignal): Promise<{ rows: readonly Row[]; isComplete: boolean }> {
    const { transport } = this.#core
    const wanted = this.#parts.limit as number
    const rows: Row[] = []
    for (let after: unknown = ''; ; ) {
      const query = {
        ...parametersOf(this.#parts),
        limit: Math.min(wanted - rows.length, limitMax),
        versions: '1',
        after,
      }
      const page = readPage(await transport.send('GET', this.#query.source.path, { query, signal }))
      rows.push(...page.items)
      const hasMore = page.hasMore === true || page.truncated === true
      if (!hasMore || rows.length >= wanted || page.cursor === null) return { rows, isComplete: !hasMore }
      after = page.cursor
    }
  }

  #apply(changes: readonly Change[]): void {
    this.#buffer?.push(...changes)
    for (const { changeType, docId, data, version } of changes) {
      if (changeType === 'removed' || !data) this.#window.remove(docId, version)
      else this.#window.put(setVersion(data, version))
      this.#optimistic.confirm(this.#query.source.path, this.#observer, docId, version)
    }
    if (this.#window.needsRefill && !this.#listing && this.#status === 'live') void this.#list(true)
    this.#changed()
  }

  #setStatus(status: Status): void {
    this.#status = status
    this.#changed()
  }

  #changed(): void {
    this.#snapshot = null
    this.#listeners.emit()
  }

  #takeSnapshot(): Snapshot {
    const { rows, pending } = this.#optimistic.show(this.#query.source.path, this.#observer)
    const shown = rows.slice(0, this.#limit)
    const items = this.#isProjected ? shown.map((row) => this.#project(row)) : shown
    const snapshot = { items, status: this.#status, pending }
    return this.#error ? { ...snapshot, error: this.#error } : snapshot
  }

  #project(row: Row): Row {
    const known = this.#projections.get(row)
    if (known) return known
    const projected: Record<string, unknown> = {}
    for (const field of this.#query.parts.fields) projected[field] = row[field]
    setVersion(projected, findVersion(row))
    this.#projections.set(row, projected as Row)
    return projected as Row
  }
}

function deferred<Value>() {
  let resolve!: (value: Value) => void
  let reject!: (error: unknown) => void
  const promise = new Promise<Value>((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })
  // A refusal is also the list's `error`; not awaiting `ready` is no mistake.
  promise.catch(() => undefined)
  return { promise, resolve, reject }
}
