/**
 * Group commit. Concurrent writes share one transaction; each is atomic. The commit goes to the write-ahead log without
 * waiting for the disk; the log is then synced off the main thread, and only then are the writes acknowledged.
 * Acknowledged means durable, and a slow disk delays writers, never readers. States: idle → (a write arrives)
 * committing groups → idle. After a failed sync (`failed`) the durable state is unknown: every write is rejected until
 * `recovery` has brought the log to disk (`recovered`).
 */
import { startSlice } from '../../base/concurrency/slices.ts'
import { groupCommitOperationsMax, writeQueueOperationsMax } from '../../limits/sqlite.ts'
import type { LogEpoch } from '../disk/log-epoch.ts'
import { EngineError } from '../sql/error.ts'
import type { Connection } from './connection.ts'
import { SqliteTransaction, type Work } from './transaction.ts'

/** A caller that waits for the sync. */
interface Waiter {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

interface Operation extends Waiter {
  readonly work: Work<unknown>
}

interface Committed {
  readonly operation: Waiter
  readonly result: unknown
}

export interface WriterOptions {
  readonly connection: Connection
  /** Makes everything committed so far durable; rejects when the disk fails. */
  readonly sync: () => Promise<void>
  /** Stamps the first group that writes after a checkpoint. */
  readonly epoch?: LogEpoch | undefined
  /** Called after each group that wrote. If it returns a promise, the next group waits for it. */
  readonly onGroup?: () => Promise<void> | undefined
  /** Called with the first failure of `sync`; every write is then rejected until `recovered`. */
  readonly onSyncFailed?: (error: unknown) => void
}

export interface Writer {
  write<T>(work: Work<T>): Promise<T>
  /** See `Database`. */
  synced(): Promise<void>
  /**
   * Pauses commits: resolves once the current group has committed. Commits resume when every returned function has been
   * called.
   */
  pause(): Promise<() => void>
  /** Operations that have not been acknowledged. */
  readonly pending: number
  readonly failed: boolean
  /** Everything committed is durable: accept writes again. */
  recovered(): void
  /** Resolves when nothing is pending. */
  idle(): Promise<void>
}

/** SQLite rolled back the transaction by itself (full disk, failed read), and with it the group. */
class GroupLost extends Error {
  constructor(cause: unknown) {
    super('The transaction is gone', { cause })
  }
}

/** An operation threw after it had written, and there is no savepoint to roll back to. */
class NotIsolated extends Error {}

interface Done {
  readonly operation: Operation
  readonly tx: SqliteTransaction
  readonly result: unknown
}

interface Refused {
  readonly operation: Operation
  readonly error: unknown
}

interface Outcome {
  readonly done: readonly Done[]
  readonly refused: readonly Refused[]
  /** Operations of the group that did not run. */
  readonly rest: readonly Operation[]
}

interface GroupResult {
  readonly wrote: boolean
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

export function createWriter({ connection, sync, epoch, onGroup, onSyncFailed }: WriterOptions): Writer {
  let queue: Operation[] = []
  let awaitingSync: Committed[] = []
  let committing = false
  /** The sync under way; null while there is none. */
  let syncing: Promise<void> | null = null
  let failed = false
  let pending = 0
  let idleWaiters: (() => void)[] = []
  /** Null while groups may start. */
  let pause: Pause | null = null

  function release(count: number): void {
    pending -= count
    if (pending > 0) return
    for (const waiter of idleWaiters) waiter()
    idleWaiters = []
  }

  function refuse(operation: Operation, error: unknown): void {
    operation.reject(error)
    release(1)
  }

  /** Runs one operation in the open transaction. A throw undoes the operation or aborts the group. */
  async function attempt(operation: Operation, isolated: boolean): Promise<Done> {
    const tx = new SqliteTransaction(connection)
    if (isolated) connection.exec('SAVEPOINT operation')
    try {
      const result = await operation.work(tx)
      tx.finish()
      if (isolated) connection.exec('RELEASE operation')
      return { operation, tx, result }
    } catch (error) {
      tx.end()
      if (!connection.inTransaction) throw new GroupLost(error)
      if (isolated) rollBackOperation(error)
      else if (tx.wrote) throw new NotIsolated()
      throw error
    }
  }

  function rollBackOperation(because: unknown): void {
    try {
      connection.exec('ROLLBACK TO operation')
      connection.exec('RELEASE operation')
    } catch {
      throw new GroupLost(because)
    }
  }

  /**
   * Runs and commits a group. The group ends with the event loop's time slice, so that neither its operations nor its
   * commit, whose time grows with the pages to write, delay other requests.
   */
  async function runGroup(group: readonly Operation[], isolated: boolean): Promise<Outcome> {
    const done: Done[] = []
    const refused: Refused[] = []
    const isOver = startSlice()
    let ran = 0
    connection.exec('BEGIN IMMEDIATE')
    for (const operation of group) {
      if (ran > 0 && isOver()) break
      ran++
      try {
        done.push(await attempt(operation, isolated))
      } catch (error) {
        if (error instanceof NotIsolated) throw error
        if (error instanceof GroupLost) throw error.cause
        refused.push({ operation, error })
      }
    }
    const wrote = done.some(({ tx }) => tx.wrote)
    if (wrote) epoch?.stamp()
    connection.exec('COMMIT')
    if (wrote) epoch?.committed()
    return { done, refused, rest: group.slice(ran) }
  }

  /**
   * Most operations that fail do so before they write, so a group runs without savepoints, which would cost a full-text
   * index its batching. If an operation throws after it has written, the group is rolled back and runs again with a
   * savepoint per operation.
   */
  async function commitGroup(group: readonly Operation[]): Promise<Outcome> {
    try {
      return await runGroup(group, false)
    } catch (error) {
      abandon()
      if (!(error instanceof NotIsolated)) throw error
    }
    try {
      return await runGroup(group, true)
    } catch (error) {
      abandon()
      throw error
    }
  }

  /** Returns whether the group wrote to the log, and the operations that did not run. */
  async function finishGroup(group: readonly Operation[]): Promise<GroupResult> {
    let outcome: Outcome
    try {
      outcome = await commitGroup(group)
    } catch (error) {
      const failure =
        error instanceof EngineError ? error : new EngineError('unavailable', 'The commit failed', [], error)
      for (const operation of group) refuse(operation, failure)
      return { wrote: false, rest: [] }
    }
    for (const { tx } of outcome.done) for (const hook of tx.hooks) hook()
    for (const { operation, error } of outcome.refused) refuse(operation, error)
    let wrote = false
    for (const { operation, tx, result } of outcome.done) {
      wrote ||= tx.wrote
      if (tx.wrote) awaitingSync.push({ operation, result })
      else {
        operation.resolve(result)
        release(1)
      }
    }
    return { wrote, rest: outcome.rest }
  }

  function abandon(): void {
    try {
      connection.exec('ROLLBACK')
    } catch {
      // SQLite has already rolled back.
    }
  }

  async function syncCommitted(): Promise<void> {
    while (awaitingSync.length > 0) {
      const batch = awaitingSync
      awaitingSync = []
      try {
        // After a failed sync, the next one may report success for pages the system has dropped.
        if (failed) throw new EngineError('unavailable', 'The database has failed')
        syncing = sync()
        await syncing
        for (const { operation, result } of batch) operation.resolve(result)
      } catch (error) {
        if (!failed) onSyncFailed?.(error)
        failed = true
        const failure = new EngineError('unavailable', 'The disk refused to sync', [], error)
        for (const { operation } of batch) operation.reject(failure)
      }
      release(batch.length)
    }
    syncing = null
  }

  async function commitQueued(): Promise<void> {
    while (queue.length > 0) {
      if (pause) {
        pause.reached.resolve()
        await pause.over.promise
        continue
      }
      const group = queue.slice(0, groupCommitOperationsMax)
      queue = queue.slice(groupCommitOperationsMax)
      const { wrote, rest } = failed ? refuseAll(group) : await finishGroup(group)
      if (rest.length > 0) queue = [...rest, ...queue]
      if (awaitingSync.length > 0 && !syncing) void syncCommitted()
      const checkpoint = wrote ? onGroup?.() : undefined
      if (checkpoint) await checkpoint
      // Yields, so that requests that have arrived meanwhile join the next group.
      if (queue.length > 0) await new Promise<void>((resolve) => setImmediate(resolve))
    }
    committing = false
    pause?.reached.resolve()
  }

  function refuseAll(group: readonly Operation[]): GroupResult {
    for (const operation of group) refuse(operation, new EngineError('unavailable', 'The database has failed'))
    return { wrote: false, rest: [] }
  }

  return {
    write<T>(work: Work<T>): Promise<T> {
      if (failed) return Promise.reject(new EngineError('unavailable', 'The database has failed'))
      if (pending >= writeQueueOperationsMax)
        return Promise.reject(new EngineError('busy', 'Too many writes are waiting'))
      pending += 1
      return new Promise<T>((resolve, reject) => {
        queue.push({ work, resolve: resolve as (value: unknown) => void, reject })
        if (committing) return
        committing = true
        // Further writes of this event-loop tick share the commit.
        setImmediate(() => void commitQueued())
      })
    },
    async synced() {
      if (awaitingSync.length === 0) {
        await syncing?.catch(() => undefined)
        if (failed) throw new EngineError('unavailable', 'The database has failed')
        return
      }
      pending += 1
      await new Promise((resolve, reject) => {
        awaitingSync.push({ operation: { resolve, reject }, result: undefined })
      })
    },
    async pause() {
      pause ??= { holders: 0, reached: Promise.withResolvers(), over: Promise.withResolvers() }
      const current = pause
      current.holders += 1
      if (committing) await current.reached.promise
      return () => {
        current.holders -= 1
        if (current.holders > 0) return
        pause = null
        current.over.resolve()
      }
    },
    get pending() {
      return pending
    },
    get failed() {
      return failed
    },
    recovered() {
      failed = false
    },
    idle: () => (pending === 0 ? Promise.resolve() : new Promise((resolve) => idleWaiters.push(resolve))),
  }
}
