/**
 * Change data capture: follows the log of every database with subscribers, in order, one reader per log. A write wakes
 * the readers of this process at once and those of the other nodes by a message; polling bounds the delay when a
 * message is lost. A change is delivered once it is on disk.
 */
import type { Clock } from '../../../base/clock.ts'
import type { Log } from '../../../base/log.ts'
import type { Bus } from '../../../engines/cluster/cluster.ts'
import { EngineError } from '../../../engines/sql/error.ts'
import type { Database, DatabaseAddress, Sql } from '../../../engines/sql/sql.ts'
import type { SqlText } from '../../../engines/sql/sql-text.ts'
import {
  feedNoticeMs,
  feedPageBytesMax,
  feedPageChangesMax,
  feedPollMs,
  recoveredBytesMax,
  recoveredChangesMax,
  recoveryPageBytesMax,
  recoveryPageChangesMax,
} from '../../../limits/subscriptions.ts'
import type { Namespaces } from '../resolve-table.ts'
import {
  type ChangeLogReader,
  createChangeLogReader,
  type Later,
  type LoggedChange,
  type LogPosition,
  logAddress,
  type Page,
  type PageSize,
} from './change-log-reader.ts'
import { findTrimmed, type LogBounds } from './trim.ts'

/** Receives a log's changes in order, one page at a time; the next page waits for it. Must not throw. */
export type OnChanges = (page: Span) => void | Promise<void>

/** All changes between two positions. */
export interface Span {
  readonly from: LogPosition
  readonly to: LogPosition
  readonly changes: readonly LoggedChange[]
}

/** A subscription to a log. */
export interface LogTail {
  /**
   * Runs `task` between two pages, once everything committed before the call has been delivered, with the position
   * between them: what `task` registers receives every change after that position, and none before it. Rejects with
   * `EngineError` when the log cannot be read, and with what `task` throws.
   */
  atPosition<T>(task: (position: LogPosition) => T | Promise<T>): Promise<T>
  /** Identifies the history of the log as of the last read; `refreshHistory` reads it again. */
  readonly history: string
  refreshHistory(): Promise<string>
  /**
   * Whether all changes between a position and a later one from `atPosition` are known, and few enough for a client to
   * catch up.
   */
  isReachableFrom(since: LogPosition, end: LogPosition): Promise<boolean>
  /** A bounded page of the changes between the two; null where some of them are deleted. */
  changesBetween(since: LogPosition, end: LogPosition): Promise<Page | null>
  /** The changes of these tables since a position; null where they are too many to keep in memory. */
  changesSince(position: LogPosition, tables: readonly string[]): Promise<Later | null>
  /** Whether these tables have changed since, as a part of a statement to a database with this log. */
  hasChangedSince(position: LogPosition, tables: readonly string[]): SqlText
  /** Stops following. */
  stop(): void
}

export interface Feed {
  /** Follows the log of a database from its end. Rejects with `EngineError` `unavailable`. */
  follow(address: DatabaseAddress, onChanges: OnChanges): Promise<LogTail>
  /** The address of the log that a database's changes are in. */
  logOf(address: DatabaseAddress): DatabaseAddress
  /** To be called when this process has committed a write to the database at the address. */
  wake(address: DatabaseAddress, database: Database): void
  close(): void
}

const channel = 'changes'

/** Leaves a request that may continue in the next page to it, so that its changes are delivered together. */
function completeRequests(page: Page): Page {
  const { changes, isLast } = page
  const last = changes.at(-1)
  if (isLast || !last) return page
  const end = changes.findLastIndex(({ requestId }) => requestId !== last.requestId) + 1
  const next = changes[end - 1]?.position
  return next ? { changes: changes.slice(0, end), next, isLast } : page
}

/** Whether other processes write to the same log. */
const isShared = ({ dialect }: Database): boolean => dialect.follow !== null

interface Follower {
  readonly reader: ChangeLogReader
  readonly database: Database
  readonly onChanges: OnChanges
  position: LogPosition
  /** Run at the next point between pages. */
  tasks: Task[]
  /** Whether the log has to be read again. */
  isWoken: boolean
  isRunning: boolean
  isStopped: boolean
  hasFailed: boolean
  history: string
}

interface Task {
  /** Never rejects. */
  readonly run: (position: LogPosition) => Promise<void>
  readonly reject: (error: unknown) => void
}

/** Delivers everything after the follower's position. */
async function advance(follower: Follower): Promise<void> {
  for (let isLast = false; !isLast; ) {
    const page = completeRequests(await follower.reader.read(follower.position, pageSize))
    if (page.changes.length > 0) {
      await follower.database.synced()
      await follower.onChanges({ from: follower.position, to: page.next, changes: page.changes })
    }
    follower.position = page.next
    isLast = page.isLast
  }
}

const pageSize: PageSize = { changes: feedPageChangesMax, bytes: feedPageBytesMax }
const recoverySize: PageSize = { changes: recoveryPageChangesMax, bytes: recoveryPageBytesMax }

export interface FeedDeps {
  readonly sql: Sql
  readonly bus: Bus
  readonly namespaces: () => Namespaces
  readonly changes: () => LogBounds
  readonly clock: Clock
  readonly log: Log
}

export function createFeed({ sql, bus, namespaces, changes, clock, log }: FeedDeps): Feed {
  const followers = new Map<string, Set<Follower>>()
  const notifying = new Set<string>()
  let unsubscribe: (() => void) | null = null
  let poll: ReturnType<typeof setInterval> | null = null

  const keyOf = (address: DatabaseAddress): string => {
    const { namespace, instanceId } = logAddress(address, sql)
    return `${namespace}\n${instanceId ?? ''}`
  }

  function failed(follower: Follower, error: unknown): void {
    if (!follower.hasFailed) log.warn('records.change_log_failed', { error })
    follower.hasFailed = true
    setTimeout(wakeOne, feedPollMs, follower).unref()
  }

  /** One read of the log serves all tasks that wait for it. */
  async function run(follower: Follower): Promise<void> {
    follower.isRunning = true
    while (follower.isWoken || follower.tasks.length > 0) {
      const { tasks } = follower
      follower.tasks = []
      follower.isWoken = false
      try {
        // After a failure the connection may be to another server, with another history.
        if (follower.hasFailed) follower.history = await follower.reader.history()
        await advance(follower)
        follower.hasFailed = false
      } catch (error) {
        for (const task of tasks) task.reject(error)
        if (!follower.isStopped) failed(follower, error)
        continue
      }
      for (const task of tasks) await task.run(follower.position)
    }
    follower.isRunning = false
  }

  function wakeOne(follower: Follower): void {
    if (follower.isStopped) return
    follower.isWoken = true
    if (!follower.isRunning) void run(follower)
  }

  function atPosition<T>(follower: Follower, task: (position: LogPosition) => T | Promise<T>): Promise<T> {
    if (follower.isStopped) return Promise.reject(new EngineError('unavailable', 'The log is no longer followed'))
    return new Promise<T>((resolve, reject) => {
      const run = async (position: LogPosition): Promise<void> => {
        try {
          resolve(await task(position))
        } catch (error) {
          reject(error)
        }
      }
      follower.tasks.push({ run, reject })
      wakeOne(follower)
    })
  }

  function wakeAll(key: string): void {
    for (const follower of followers.get(key) ?? []) wakeOne(follower)
  }

  /** Notifies the other nodes, once for all writes of a short time. */
  function notifyNodes(key: string): void {
    if (notifying.has(key)) return
    notifying.add(key)
    setTimeout(() => {
      notifying.delete(key)
      bus.publish(channel, key)
    }, feedNoticeMs)
  }

  function listen(): void {
    unsubscribe ??= bus.subscribe(channel, wakeAll)
    poll ??= setInterval(() => {
      for (const key of followers.keys()) wakeAll(key)
    }, feedPollMs)
    poll.unref()
  }

  async function follow(address: DatabaseAddress, onChanges: OnChanges): Promise<Follower> {
    const own = logAddress(address, sql)
    const database = sql.database(own)
    if (isShared(database)) listen()
    const perInstance = namespaces().get(address.namespace)?.instance === true
    const reader = createChangeLogReader(database, own, perInstance, () => clock.now(), sql)
    const history = await reader.history()
    const position = await reader.currentPosition()
    await database.synced()
    const idle = { isWoken: false, isRunning: false, isStopped: false, hasFailed: false }
    return { reader, database, onChanges, position, history, tasks: [], ...idle }
  }

  return {
    async follow(address, onChanges) {
      const follower = await follow(address, onChanges)
      const key = keyOf(address)
      const others = followers.get(key) ?? new Set()
      followers.set(key, others.add(follower))
      return {
        atPosition: (task) => atPosition(follower, task),
        get history() {
          return follower.history
        },
        async refreshHistory() {
          follower.history = await follower.reader.history()
          return follower.history
        },
        async isReachableFrom(since, end) {
          const { reader } = follower
          const nowMs = clock.now()
          // Changes carry the time when their request began, so some are deleted slightly before the retention ends.
          const { retentionMs } = changes()
          if (nowMs - since.atMs > 0.9 * retentionMs) return false
          if (!(await reader.isOfHistory(since, end, nowMs - retentionMs))) return false
          const size = await reader.measure(since, end, recoveredChangesMax + 1)
          return size.changes <= recoveredChangesMax && size.bytes <= recoveredBytesMax
        },
        async changesBetween(since, end) {
          const page = await follower.reader.readUntil(since, end, recoverySize)
          // Read afterwards: the log is also trimmed meanwhile.
          const trimmed = await findTrimmed(follower.database, address.namespace)
          return follower.database.dialect.logView.isBeyond(trimmed, since.from) ? null : page
        },
        changesSince: (position, tables) => follower.reader.changesSince(position, tables, recoverySize),
        hasChangedSince: (position, tables) => follower.reader.hasChangedSince(position, tables),
        stop() {
          follower.isStopped = true
          others.delete(follower)
          if (others.size === 0 && followers.get(key) === others) followers.delete(key)
        },
      }
    },
    logOf: (address) => logAddress(address, sql),
    wake(address, database) {
      const key = keyOf(address)
      wakeAll(key)
      if (isShared(database)) notifyNodes(key)
    },
    close() {
      unsubscribe?.()
      if (poll) clearInterval(poll)
      for (const some of followers.values()) for (const follower of some) follower.isStopped = true
      followers.clear()
    },
  }
}
