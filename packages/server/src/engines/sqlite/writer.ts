/**
 * Group commit. Concurrent writes share one transaction; each is atomic. They are taken round robin over callers, those
 * of one caller in order. A group starts once a round of the event loop has added nothing to it. The commit goes to the
 * write-ahead log without waiting for the disk; the log is then synced off the main thread, and only then are the
 * writes acknowledged. Acknowledged means durable, and a slow disk delays writers, never readers. States: idle → (a
 * write arrives) committing groups → idle. After a failed sync (`failed`) the durable state is unknown: every write is
 * rejected until `recovery` has brought the log to disk (`recovered`).
 */
import { startAdaptively } from '../../base/batching/adaptive-batch.ts'
import { RoundRobin } from '../../base/concurrency/round-robin.ts'
import { groupCommitOperationsMax, writeQueueOperationsMax, writeQueuePerCallerMax } from '../../limits/sqlite.ts'
import { writeGroupWaitMs } from '../../limits/writes.ts'
import { EngineError } from '../sql/error.ts'
import {
  commitGroup,
  type Group,
  type GroupTarget,
  type Operation,
  type Outcome,
  type Waiter,
} from './group-transaction.ts'
import type { Work } from './transaction.ts'

interface Committed {
  readonly operation: Waiter
  readonly result: unknown
}

export interface WriterOptions extends GroupTarget {
  /** Makes everything committed so far durable; rejects when the disk fails. */
  readonly sync: () => Promise<void>
  /** Called after each group that changed anything. If it returns a promise, the next group waits for it. */
  readonly onGroup?: () => Promise<void> | undefined
  /** Called with the first failure of `sync`; every write is then rejected until `recovered`. */
  readonly onSyncFailed?: (error: unknown) => void
  /** A monotonic clock in milliseconds; the process's by default. */
  readonly elapsedMs?: (() => number) | undefined
}

interface GroupResult {
  readonly changed: boolean
  /** Operations of the group that did not run. */
  readonly rest: readonly Operation[]
}

/** Keeps groups from starting. */
interface Pause {
  holders: number
  /** Resolved when no group runs. */
  readonly reached: PromiseWithResolvers<void>
  /** Resolved by the last holder. */
  readonly over: PromiseWithResolvers<void>
}

const failedBefore = (): EngineError => new EngineError('unavailable', 'The database has failed')

export class Writer {
  readonly #options: WriterOptions
  readonly #queue = new RoundRobin<Operation>()
  /** Taken from the queue for a group that ended without them. */
  #rest: Operation[] = []
  #awaitingSync: Committed[] = []
  #isCommitting = false
  /** The sync under way; null while there is none. */
  #syncing: Promise<void> | null = null
  #failed = false
  #pending = 0
  #idleWaiters: (() => void)[] = []
  /** Null while groups may start. */
  #pause: Pause | null = null

  constructor(options: WriterOptions) {
    this.#options = options
  }

  /** Operations that have not been acknowledged. */
  get pending(): number {
    return this.#pending
  }

  get failed(): boolean {
    return this.#failed
  }

  /** See `Database`. Writes of the server itself have no caller. */
  write<T>(work: Work<T>, caller = ''): Promise<T> {
    if (this.#failed) return Promise.reject(failedBefore())
    if (this.#pending >= writeQueueOperationsMax)
      return Promise.reject(new EngineError('busy', 'Too many writes are waiting'))
    if (caller !== '' && this.#queue.sizeOf(caller) >= writeQueuePerCallerMax)
      return Promise.reject(new EngineError('crowded', 'Too many writes of yours are waiting'))
    this.#pending += 1
    return new Promise<T>((resolve, reject) => {
      this.#queue.add(caller, { work, resolve: resolve as (value: unknown) => void, reject })
      if (this.#isCommitting) return
      this.#isCommitting = true
      this.#startGroup(() => void this.#commitQueued())
    })
  }

  /** See `Database`. */
  async synced(): Promise<void> {
    if (this.#awaitingSync.length === 0) {
      await this.#syncing?.catch(() => undefined)
      if (this.#failed) throw failedBefore()
      return
    }
    this.#pending += 1
    await new Promise((resolve, reject) => {
      this.#awaitingSync.push({ operation: { resolve, reject }, result: undefined })
    })
  }

  /**
   * Pauses commits: resolves once the current group has committed. Commits resume when every returned function has been
   * called.
   */
  async pause(): Promise<() => void> {
    this.#pause ??= { holders: 0, reached: Promise.withResolvers(), over: Promise.withResolvers() }
    const current = this.#pause
    current.holders += 1
    if (this.#isCommitting) await current.reached.promise
    return () => {
      current.holders -= 1
      if (current.holders > 0) return
      this.#pause = null
      current.over.resolve()
    }
  }

  /** Everything committed is durable: accept writes again. */
  recovered(): void {
    this.#failed = false
  }

  /** Resolves when nothing is pending. */
  idle(): Promise<void> {
    return this.#pending === 0 ? Promise.resolve() : new Promise((resolve) => this.#idleWaiters.push(resolve))
  }

  async #commitQueued(): Promise<void> {
    while (this.#waiting() > 0) {
      if (this.#pause) {
        this.#pause.reached.resolve()
        await this.#pause.over.promise
        continue
      }
      const group = this.#createGroup()
      const { changed, rest } = this.#failed ? this.#refuseGroup(group, failedBefore()) : await this.#finishGroup(group)
      if (rest.length > 0) this.#rest = [...rest, ...this.#rest]
      if (this.#awaitingSync.length > 0 && !this.#syncing) void this.#syncCommitted()
      const checkpoint = changed ? this.#options.onGroup?.() : undefined
      if (checkpoint) await checkpoint
      // Yields, so that requests that have arrived meanwhile join the next group.
      if (this.#waiting() > 0) await new Promise<void>((resolve) => this.#startGroup(resolve))
    }
    this.#isCommitting = false
    this.#pause?.reached.resolve()
  }

  /** Whether something committed is not known to be on disk. */
  #hasUnsynced(): boolean {
    return this.#syncing !== null || this.#awaitingSync.length > 0
  }

  #waiting(): number {
    return this.#rest.length + this.#queue.size
  }

  /** Writes that arrive in this tick, and in those after it while each brings some, share the commit. */
  #startGroup(start: () => void): void {
    const size = (): number => this.#waiting()
    const { elapsedMs } = this.#options
    startAdaptively({ size, sizeMax: groupCommitOperationsMax, waitMs: writeGroupWaitMs, elapsedMs }, start)
  }

  /** A group takes an operation when it runs it, so that a write waits for one of each other caller. */
  #createGroup(): Group {
    const taken: Operation[] = []
    return {
      taken,
      next: () => {
        if (taken.length === groupCommitOperationsMax) return undefined
        const operation = this.#rest.shift() ?? this.#queue.shift()
        if (operation) taken.push(operation)
        return operation
      },
    }
  }

  async #finishGroup(group: Group): Promise<GroupResult> {
    let outcome: Outcome
    try {
      outcome = await commitGroup(this.#options, group)
    } catch (error) {
      const isKnown = error instanceof EngineError
      return this.#refuseGroup(group, isKnown ? error : new EngineError('unavailable', 'The commit failed', [], error))
    }
    for (const { tx } of outcome.done) for (const hook of tx.hooks) hook()
    for (const { operation, error } of outcome.refused) this.#refuse(operation, error)
    for (const { operation, tx, result } of outcome.done) {
      // A write that found nothing to change may have found it done by one that is not on disk yet.
      if (tx.changed || (tx.wrote && this.#hasUnsynced())) this.#awaitingSync.push({ operation, result })
      else {
        operation.resolve(result)
        this.#release(1)
      }
    }
    return { changed: outcome.done.some(({ tx }) => tx.changed), rest: outcome.rest }
  }

  /** With what a complete group would have taken: what waits would fail as well. */
  #refuseGroup(group: Group, failure: EngineError): GroupResult {
    while (group.next());
    for (const operation of group.taken) this.#refuse(operation, failure)
    return { changed: false, rest: [] }
  }

  async #syncCommitted(): Promise<void> {
    while (this.#awaitingSync.length > 0) {
      const batch = this.#awaitingSync
      this.#awaitingSync = []
      try {
        // After a failed sync, the next one may report success for pages the system has dropped.
        if (this.#failed) throw failedBefore()
        this.#syncing = this.#options.sync()
        await this.#syncing
        for (const { operation, result } of batch) operation.resolve(result)
      } catch (error) {
        if (!this.#failed) this.#options.onSyncFailed?.(error)
        this.#failed = true
        const failure = new EngineError('unavailable', 'The disk refused to sync', [], error)
        for (const { operation } of batch) operation.reject(failure)
      }
      this.#release(batch.length)
    }
    this.#syncing = null
  }

  #refuse(operation: Operation, error: unknown): void {
    operation.reject(error)
    this.#release(1)
  }

  #release(count: number): void {
    this.#pending -= count
    if (this.#pending > 0) return
    for (const waiter of this.#idleWaiters) waiter()
    this.#idleWaiters = []
  }
}
