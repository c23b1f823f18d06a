/**
 * Follows one change log for one receiver: reads it from its end, page by page, and delivers each change once it is on
 * disk. Reads are triggered from outside (`change-feed`).
 */
import type { Clock } from '../../../base/clock.ts'
import type { Log } from '../../../base/log.ts'
import { EngineError } from '../../../engines/sql/error.ts'
import type { Database } from '../../../engines/sql/sql.ts'
import type { SqlText } from '../../../engines/sql/sql-text.ts'
import {
  feedPageBytesMax,
  feedPageChangesMax,
  feedPollMs,
  recoveredBytesMax,
  recoveredChangesMax,
  recoveryPageBytesMax,
  recoveryPageChangesMax,
} from '../../../limits/subscriptions.ts'
import type { ChangeLogReader, Later, LoggedChange, LogPosition, Page, PageSize } from './change-log-reader.ts'
import { findTrimmed, type LogBounds } from './trim.ts'

/** All changes between two positions. */
export interface Span {
  readonly from: LogPosition
  readonly to: LogPosition
  readonly changes: readonly LoggedChange[]
}

/** Receives a log's changes in order, one page at a time; the next page waits for it. Must not throw. */
export type OnChanges = (page: Span) => void | Promise<void>

export interface LogFollowerDeps {
  readonly reader: ChangeLogReader
  /** The database of the log. */
  readonly database: Database
  readonly namespace: string
  readonly onChanges: OnChanges
  readonly onStopped: (follower: LogFollower) => void
  readonly bounds: () => LogBounds
  readonly clock: Clock
  readonly log: Log
}

interface Task {
  /** Never rejects. */
  readonly run: (position: LogPosition) => Promise<void>
  readonly reject: (error: unknown) => void
}

const pageSize: PageSize = { changes: feedPageChangesMax, bytes: feedPageBytesMax }
const recoverySize: PageSize = { changes: recoveryPageChangesMax, bytes: recoveryPageBytesMax }

export class LogFollower {
  readonly #deps: LogFollowerDeps
  #position: LogPosition
  #history: string
  /** Run at the next point between pages. */
  #tasks: Task[] = []
  /** Whether the log has to be read again. */
  #isWoken = false
  #isRunning = false
  #isStopped = false
  #hasFailed = false

  private constructor(deps: LogFollowerDeps, history: string, position: LogPosition) {
    this.#deps = deps
    this.#history = history
    this.#position = position
  }

  /** Follows a log from its end. Rejects with `EngineError` `unavailable`. */
  static async open(deps: LogFollowerDeps): Promise<LogFollower> {
    const history = await deps.reader.history()
    const position = await deps.reader.currentPosition()
    await deps.database.synced()
    return new LogFollower(deps, history, position)
  }

  /** Identifies the history of the log as of the last read; `refreshHistory` reads it again. */
  get history(): string {
    return this.#history
  }

  async refreshHistory(): Promise<string> {
    this.#history = await this.#deps.reader.history()
    return this.#history
  }

  /** Reads the log again, after the read in progress if there is one. */
  wake(): void {
    if (this.#isStopped) return
    this.#isWoken = true
    if (!this.#isRunning) void this.#run()
  }

  /**
   * Runs `task` between two pages, once everything committed before the call has been delivered, with the position
   * between them: what `task` registers receives every change after that position, and none before it. Rejects with
   * `EngineError` when the log cannot be read, and with what `task` throws.
   */
  atPosition<T>(task: (position: LogPosition) => T | Promise<T>): Promise<T> {
    if (this.#isStopped) return Promise.reject(new EngineError('unavailable', 'The log is no longer followed'))
    return new Promise<T>((resolve, reject) => {
      const run = async (position: LogPosition): Promise<void> => {
        try {
          resolve(await task(position))
        } catch (error) {
          reject(error)
        }
      }
      this.#tasks.push({ run, reject })
      this.wake()
    })
  }

  /**
   * Whether all changes between a position and a later one from `atPosition` are known, and few enough for a client to
   * catch up.
   */
  async isReachableFrom(since: LogPosition, end: LogPosition): Promise<boolean> {
    const { reader, bounds, clock } = this.#deps
    const nowMs = clock.now()
    // Changes carry the time when their request began, so some are deleted slightly before the retention ends.
    const { retentionMs } = bounds()
    if (nowMs - since.atMs > 0.9 * retentionMs) return false
    if (!(await reader.isOfHistory(since, end, nowMs - retentionMs))) return false
    const size = await reader.measure(since, end, recoveredChangesMax + 1)
    return size.changes <= recoveredChangesMax && size.bytes <= recoveredBytesMax
  }

  /** A bounded page of the changes between the two; null where some of them are deleted. */
  async changesBetween(since: LogPosition, end: LogPosition): Promise<Page | null> {
    const { reader, database, namespace } = this.#deps
    const page = await reader.readUntil(since, end, recoverySize)
    // Read afterwards: the log is also trimmed meanwhile.
    const trimmed = await findTrimmed(database, namespace)
    return database.dialect.logView.isBeyond(trimmed, since.from) ? null : page
  }

  /** The changes of these tables since a position; null where they are too many to keep in memory. */
  changesSince(position: LogPosition, tables: readonly string[]): Promise<Later | null> {
    return this.#deps.reader.changesSince(position, tables, recoverySize)
  }

  /** Whether these tables have changed since, as a part of a statement to a database with this log. */
  hasChangedSince(position: LogPosition, tables: readonly string[]): SqlText {
    return this.#deps.reader.hasChangedSince(position, tables)
  }

  /** Stops following. */
  stop(): void {
    this.#isStopped = true
    this.#deps.onStopped(this)
  }

  /** One read of the log serves all tasks that wait for it. */
  async #run(): Promise<void> {
    this.#isRunning = true
    while (this.#isWoken || this.#tasks.length > 0) {
      const tasks = this.#tasks
      this.#tasks = []
      this.#isWoken = false
      try {
        // After a failure the connection may be to another server, with another history.
        if (this.#hasFailed) await this.refreshHistory()
        await this.#advance()
        this.#hasFailed = false
      } catch (error) {
        for (const task of tasks) task.reject(error)
        if (!this.#isStopped) this.#retryLater(error)
        continue
      }
      for (const task of tasks) await task.run(this.#position)
    }
    this.#isRunning = false
  }

  /** Delivers everything after the current position. */
  async #advance(): Promise<void> {
    const { reader, database, onChanges } = this.#deps
    for (let isLast = false; !isLast; ) {
      const page = completeRequests(await reader.read(this.#position, pageSize))
      if (page.changes.length > 0) {
        await database.synced()
        await onChanges({ from: this.#position, to: page.next, changes: page.changes })
      }
      this.#position = page.next
      isLast = page.isLast
    }
  }

  /** Logs the first of several failures in a row. */
  #retryLater(error: unknown): void {
    if (!this.#hasFailed) this.#deps.log.warn('records.change_log_failed', { error })
    this.#hasFailed = true
    setTimeout(() => this.wake(), feedPollMs).unref()
  }
}

/** Leaves a request that may continue in the next page to it, so that its changes are delivered together. */
function completeRequests(page: Page): Page {
  const { changes, isLast } = page
  const last = changes.at(-1)
  if (isLast || !last) return page
  const end = changes.findLastIndex(({ requestId }) => requestId !== last.requestId) + 1
  const next = changes[end - 1]?.position
  return next ? { changes: changes.slice(0, end), next, isLast } : page
}
