/**
 * Dispatches one change log: reads it from its stored position and adds the jobs of its changes in the transaction that
 * moves the position, so that each change becomes its jobs exactly once, whatever crashes.
 */
import { type Clock, waitOn } from '../../../base/clock.ts'
import type { Log } from '../../../base/log.ts'
import type { Database, DatabaseAddress } from '../../../engines/sql/sql.ts'
import {
  dispatcherCheckMs,
  dispatcherLeaseMs,
  dispatcherPageBytes,
  dispatcherPageChanges,
  dispatcherPollMs,
} from '../../../limits/function-jobs.ts'
import type { NewJob } from '../jobs/job.ts'
import type { JobStore } from '../jobs/job-store.ts'
import { type Change, type ChangeLog, keyOfLog } from './change-logs.ts'
import type { Positions, StoredPosition } from './positions.ts'

export interface LogDispatcherDeps {
  readonly changeLog: ChangeLog
  readonly positions: Positions
  readonly database: Database
  readonly store: JobStore
  /** The jobs of a change. */
  readonly jobsOf: (change: Change, namespace: string) => readonly NewJob[]
  /** Called after the commit with the jobs that were added. */
  readonly onAdded: (jobs: readonly NewJob[]) => void
  /** Resolves while there is room for more jobs. */
  readonly room: () => Promise<void>
  /** Called when everything has been dispatched; returns whether the dispatcher should stop. */
  readonly onRest?: (position: StoredPosition) => Promise<boolean>
  readonly clock: Clock
  readonly log: Log
}

const pageSize = { changes: dispatcherPageChanges, bytes: dispatcherPageBytes }

export class LogDispatcher {
  readonly #deps: LogDispatcherDeps
  #current: StoredPosition | null = null
  /** Whether the position is known to be of this log's history. */
  #isChecked = false
  #isLossReported = false
  #renewedMs = 0
  #isWoken = true
  #running: Promise<void> | null = null
  #isStopped = false
  #hasFailed = false
  readonly #unsubscribe: () => void

  constructor(deps: LogDispatcherDeps) {
    this.#deps = deps
    this.#unsubscribe = deps.changeLog.onWake(() => this.wake())
    void this.#poll()
    this.wake()
  }

  get address(): DatabaseAddress {
    return this.#deps.changeLog.address
  }

  /** The position as of the last transaction of this node; null while another node dispatches the log. */
  get current(): StoredPosition | null {
    return this.#current
  }

  /** How old the oldest change is that may not be dispatched, at most. */
  lagMs(nowMs: number): number {
    return this.#current && this.#running ? Math.max(0, nowMs - this.#current.position.atMs) : 0
  }

  /** Reads the log again, after the read in progress. */
  wake(): void {
    this.#isWoken = true
    if (this.#isStopped || this.#running) return
    this.#running = this.#run().finally(() => {
      this.#running = null
      if (this.#isWoken && !this.#isStopped) this.wake()
    })
  }

  /** Resolves when everything that was in the log before the call has been read. */
  async finishDue(): Promise<void> {
    this.wake()
    while (this.#running) await this.#running
  }

  /** Stops after the transaction under way. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#unsubscribe()
    await this.#running
  }

  async #poll(): Promise<void> {
    while (!this.#isStopped) {
      await waitOn(this.#deps.clock, dispatcherPollMs)
      this.wake()
    }
  }

  async #run(): Promise<void> {
    while (this.#isWoken && !this.#isStopped) {
      this.#isWoken = false
      try {
        await this.#dispatch()
        this.#hasFailed = false
      } catch (error) {
        this.#current = null
        if (!this.#hasFailed) this.#deps.log.warn('functions.dispatch_failed', { log: keyOfLog(this.address), error })
        this.#hasFailed = true
        // The next poll tries again.
        return
      }
    }
  }

  async #acquire(): Promise<StoredPosition | null> {
    const { positions, changeLog, clock } = this.#deps
    const nowMs = clock.now()
    if (!this.#current || nowMs - this.#renewedMs >= dispatcherLeaseMs / 3) {
      const current = await positions.acquire(changeLog.address)
      if (current?.version !== this.#current?.version) this.#isChecked = false
      this.#current = current
      this.#renewedMs = nowMs
    }
    return this.#current
  }

  async #dispatch(): Promise<void> {
    const { changeLog, room, onRest } = this.#deps
    for (let isLast = false; !isLast && !this.#isStopped; ) {
      const current = await this.#acquire()
      if (!current) return
      if (!(await this.#check(current))) continue
      await room()
      const page = await changeLog.read(current.position, pageSize)
      isLast = page.isLast
      if (page.changes.length > 0) await this.#commit(current, page.changes, page.next)
      // A fresh time: nothing younger than it has been trimmed.
      else this.#current = { position: page.next, version: current.version }
      if (page.changes.length === 0 && isLast && onRest && (await onRest(current))) {
        this.#isStopped = true
        this.#unsubscribe()
      }
    }
  }

  /**
   * Reports changes that were trimmed before they were dispatched. False where the position was of another history of
   * the log and has been moved to its end.
   */
  async #check(current: StoredPosition): Promise<boolean> {
    const { changeLog, clock, log } = this.#deps
    if (this.#isChecked && clock.now() - current.position.atMs < dispatcherCheckMs) return true
    const coverage = await changeLog.coverageOf(current.position)
    if (coverage !== 'all' && !this.#isLossReported)
      log.error('functions.changes_lost', {
        log: keyOfLog(changeLog.address),
        since: new Date(current.position.atMs).toISOString(),
      })
    this.#isLossReported = coverage !== 'all'
    this.#isChecked = true
    if (coverage !== 'none') return true
    await this.#commit(current, [], await changeLog.currentPosition())
    return false
  }

  async #commit(current: StoredPosition, changes: readonly Change[], to: StoredPosition['position']): Promise<void> {
    const { database, positions, store, changeLog, jobsOf, onAdded, clock } = this.#deps
    const jobs = changes.flatMap((change) => jobsOf(change, changeLog.address.namespace))
    const moved = await database.write(async (tx) => {
      if (jobs.length > 0) await store.lockKeys(tx)
      if (!(await positions.advance(tx, changeLog.address, current, to))) return false
      if (jobs.length > 0) await store.add(tx, jobs)
      return true
    })
    this.#current = moved ? { position: to, version: current.version + 1 } : null
    if (!moved) return
    this.#renewedMs = clock.now()
    if (jobs.length > 0) onAdded(jobs)
  }
}
