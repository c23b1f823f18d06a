/**
 * The feed of committed changes: follows the log of every database somebody watches, in order, one reader per log. A
 * write wakes the readers of this process at once and those of the other nodes by a message; a message that is lost
 * costs a moment, since logs are also looked at from time to time. Nothing is told before it is on disk.
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
import type { Namespaces } from '../schema/tables.ts'
import {
  createFeedReader,
  type FeedReader,
  type Later,
  type LoggedChange,
  logAddress,
  type Page,
  type PageSize,
  type Place,
} from './feed-reader.ts'
import { findTrimmed, type LogBounds } from './trim.ts'

/** Told of a log's changes, in order, a page at a time; the next page waits until it is done. Must not throw. */
export type OnChanges = (page: Span) => void | Promise<void>

/** All changes between two places. */
export interface Span {
  readonly from: Place
  readonly to: Place
  readonly changes: readonly LoggedChange[]
}

/** One log being followed. */
export interface Following {
  /**
   * Runs `task` between two pages, once everything committed before the call has been told, with the place it stands
   * at: whatever `task` registers hears every change behind that place, and none before it. Rejects with `EngineError`
   * when the log cannot be read, and with what `task` throws.
   */
  between<T>(task: (place: Place) => T | Promise<T>): Promise<T>
  /** Names the history of the log as it was when last looked at; `look` looks again. */
  readonly history: string
  look(): Promise<string>
  /**
   * Whether all changes between a place and a later one that `between` gave are known, and few enough for a client to
   * be brought up to date with them.
   */
  reaches(since: Place, end: Place): Promise<boolean>
  /** A bounded page of the changes between the two; null where some of them are gone. */
  read(since: Place, end: Place): Promise<Page | null>
  /** What has become of tables since a place; null where it is too much to be held. */
  since(place: Place, tables: readonly string[]): Promise<Later | null>
  /** Whether anything has become of them since, as a part of a statement to a database with this log. */
  hasMoved(place: Place, tables: readonly string[]): SqlText
  /** Ends the following. */
  stop(): void
}

export interface Feed {
  /** Follows the log of a database from now on. Rejects with `EngineError` `unavailable`. */
  follow(address: DatabaseAddress, onChanges: OnChanges): Promise<Following>
  /** The address of the log that a database's changes are in. */
  logOf(address: DatabaseAddress): DatabaseAddress
  /** To be called when a write of this process has been committed to the database at the address. */
  wake(address: DatabaseAddress, database: Database): void
  close(): void
}

const channel = 'changes'

/** Leaves what may go on in the next page to it, so that a request's changes are told together where possible. */
function wholeRequests(page: Page): Page {
  const { changes, isLast } = page
  const last = changes.at(-1)
  if (isLast || !last) return page
  const end = changes.findLastIndex(({ requestId }) => requestId !== last.requestId) + 1
  const next = changes[end - 1]?.place
  return next ? { changes: changes.slice(0, end), next, isLast } : page
}

/** Whether other processes write to the same log. */
const isShared = ({ dialect }: Database): boolean => dialect.follow !== null

interface Follower {
  readonly reader: FeedReader
  readonly database: Database
  readonly onChanges: OnChanges
  place: Place
  /** What waits for the next moment between pages. */
  tasks: Task[]
  /** Whether the log has to be looked at again. */
  isWoken: boolean
  isRunning: boolean
  isStopped: boolean
  hasFailed: boolean
  history: string
}

interface Task {
  /** Never rejects. */
  readonly run: (place: Place) => Promise<void>
  readonly reject: (error: unknown) => void
}

/** Tells everything behind the follower's place. */
async function advance(follower: Follower): Promise<void> {
  for (let isLast = false; !isLast; ) {
    const page = wholeRequests(await follower.reader.read(follower.place, pageSize))
    if (page.changes.length > 0) {
      await follower.database.synced()
      await follower.onChanges({ from: follower.place, to: page.next, changes: page.changes })
    }
    follower.place = page.next
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
  const noticed = new Set<string>()
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

  /** One look at the log serves everybody who waits for one. */
  async function run(follower: Follower): Promise<void> {
    follower.isRunning = true
    while (follower.isWoken || follower.tasks.length > 0) {
      const { tasks } = follower
      follower.tasks = []
      follower.isWoken = false
      try {
        // After a failure it may be another server that answers.
        if (follower.hasFailed) follower.history = await follower.reader.history()
        await advance(follower)
        follower.hasFailed = false
      } catch (error) {
        for (const task of tasks) task.reject(error)
        if (!follower.isStopped) failed(follower, error)
        continue
      }
      for (const task of tasks) await task.run(follower.place)
    }
    follower.isRunning = false
  }

  function wakeOne(follower: Follower): void {
    if (follower.isStopped) return
    follower.isWoken = true
    if (!follower.isRunning) void run(follower)
  }

  function between<T>(follower: Follower, task: (place: Place) => T | Promise<T>): Promise<T> {
    if (follower.isStopped) return Promise.reject(new EngineError('unavailable', 'The log is no longer followed'))
    return new Promise<T>((resolve, reject) => {
      const run = async (place: Place): Promise<void> => {
        try {
          resolve(await task(place))
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

  /** Tells the other nodes, once for the many writes of a moment. */
  function notice(key: string): void {
    if (noticed.has(key)) return
    noticed.add(key)
    setTimeout(() => {
      noticed.delete(key)
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
    const reader = createFeedReader(database, own, perInstance, () => clock.now(), sql)
    const history = await reader.history()
    const place = await reader.here()
    await database.synced()
    const quiet = { isWoken: false, isRunning: false, isStopped: false, hasFailed: false }
    return { reader, database, onChanges, place, history, tasks: [], ...quiet }
  }

  return {
    async follow(address, onChanges) {
      const follower = await follow(address, onChanges)
      const key = keyOf(address)
      const others = followers.get(key) ?? new Set()
      followers.set(key, others.add(follower))
      return {
        between: (task) => between(follower, task),
        get history() {
          return follower.history
        },
        async look() {
          follower.history = await follower.reader.history()
          return follower.history
        },
        async reaches(since, end) {
          const { reader } = follower
          const nowMs = clock.now()
          // Rows are dated by when their request began, so the log is a little shorter than it says.
          const { retentionMs } = changes()
          if (nowMs - since.atMs > 0.9 * retentionMs) return false
          if (!(await reader.knows(since, end, nowMs - retentionMs))) return false
          const missed = await reader.measure(since, end, recoveredChangesMax + 1)
          return missed.changes <= recoveredChangesMax && missed.bytes <= recoveredBytesMax
        },
        async read(since, end) {
          const page = await follower.reader.readUntil(since, end, recoverySize)
          // Asked for afterwards: the log is also trimmed while it is read.
          const trimmed = await findTrimmed(follower.database, address.namespace)
          return follower.database.dialect.logView.isBeyond(trimmed, since.from) ? null : page
        },
        since: (place, tables) => follower.reader.since(place, tables, recoverySize),
        hasMoved: (place, tables) => follower.reader.hasMoved(place, tables),
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
      if (isShared(database)) notice(key)
    },
    close() {
      unsubscribe?.()
      if (poll) clearInterval(poll)
      for (const some of followers.values()) for (const follower of some) follower.isStopped = true
      followers.clear()
    },
  }
}
