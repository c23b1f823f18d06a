/**
 * Change data capture: follows the log of every database with subscribers (`log-follower`). A write wakes the followers
 * of this process at once and those of the other nodes by a message; polling bounds the delay when a message is lost.
 */
import type { Clock } from '../../../base/clock.ts'
import type { Log } from '../../../base/log.ts'
import type { Bus } from '../../../engines/cluster/cluster.ts'
import type { Database, DatabaseAddress, Sql } from '../../../engines/sql/sql.ts'
import { feedNoticeMs, feedPollMs } from '../../../limits/subscriptions.ts'
import type { Namespaces } from '../resolve-table.ts'
import { type ChangeLog, createChangeLog } from './change-log.ts'
import { createChangeLogReader, logAddress } from './change-log-reader.ts'
import type { createFindRows } from './inserted-records.ts'
import { LogFollower, type OnChanges } from './log-follower.ts'
import type { LogBounds } from './trim.ts'

export interface ChangeFeedDeps {
  readonly sql: Sql
  readonly bus: Bus
  readonly namespaces: () => Namespaces
  /** See `createFindRows`. */
  readonly findRows: ReturnType<typeof createFindRows>
  readonly changes: () => LogBounds
  readonly clock: Clock
  readonly log: Log
}

const channel = 'changes'

/** Reads a log again when it is woken. */
interface Wakeable {
  wake(): void
}

/** Whether other processes write to the same log. */
const isShared = ({ dialect }: Database): boolean => dialect.follow !== null

export class ChangeFeed {
  readonly #deps: ChangeFeedDeps
  /** By the key of their log. */
  readonly #followers = new Map<string, Set<Wakeable>>()
  /** Logs whose writes the other nodes will be notified of. */
  readonly #notifying = new Set<string>()
  #unsubscribe: (() => void) | null = null
  #poll: ReturnType<typeof setInterval> | null = null

  constructor(deps: ChangeFeedDeps) {
    this.#deps = deps
  }

  /** Follows the log of a database from its end. Rejects with `EngineError` `unavailable`. */
  async follow(address: DatabaseAddress, onChanges: OnChanges): Promise<LogFollower> {
    const { changes, clock, log } = this.#deps
    const { own, database, reader } = this.#openReader(address)
    const key = keyOf(own)
    const follower = await LogFollower.open({
      reader,
      database,
      namespace: own.namespace,
      onChanges,
      onStopped: (stopped) => this.#remove(key, stopped),
      bounds: changes,
      clock,
      log,
    })
    this.#add(key, follower)
    return follower
  }

  /** The log of a database, for a reader that keeps its position itself. */
  changeLog(address: DatabaseAddress): ChangeLog {
    const { own, database, reader } = this.#openReader(address)
    const key = keyOf(own)
    return createChangeLog({
      address: own,
      reader,
      database,
      bounds: this.#deps.changes,
      clock: this.#deps.clock,
      onWake: (wake) => {
        const wakeable = { wake }
        this.#add(key, wakeable)
        return () => this.#remove(key, wakeable)
      },
    })
  }

  #openReader(address: DatabaseAddress) {
    const { sql, namespaces, clock } = this.#deps
    const own = this.logOf(address)
    const database = sql.database(own)
    if (isShared(database)) this.#listen()
    const perInstance = namespaces().get(own.namespace)?.instance === true
    const reader = createChangeLogReader({
      database,
      address: own,
      perInstance,
      findRows: (table) => this.#deps.findRows(own.namespace, table, database.dialect),
      nowMs: () => clock.now(),
      storage: sql,
    })
    return { own, database, reader }
  }

  #add(key: string, wakeable: Wakeable): void {
    const others = this.#followers.get(key) ?? new Set()
    this.#followers.set(key, others.add(wakeable))
  }

  /** The address of the log that a database's changes are in. */
  logOf(address: DatabaseAddress): DatabaseAddress {
    return logAddress(address, this.#deps.sql)
  }

  /** To be called when this process has committed a write to the database at the address. */
  wake(address: DatabaseAddress, database: Database): void {
    if (this.#followers.size === 0 && !isShared(database)) return
    const key = keyOf(this.logOf(address))
    this.#wakeAll(key)
    if (isShared(database)) this.#notifyNodes(key)
  }

  /** Stops every follower. */
  close(): void {
    this.#unsubscribe?.()
    if (this.#poll) clearInterval(this.#poll)
    for (const followers of this.#followers.values())
      for (const follower of [...followers]) if (follower instanceof LogFollower) follower.stop()
  }

  #remove(key: string, follower: Wakeable): void {
    const others = this.#followers.get(key)
    others?.delete(follower)
    if (others?.size === 0) this.#followers.delete(key)
  }

  #wakeAll(key: string): void {
    const followers = this.#followers.get(key)
    if (followers) for (const follower of followers) follower.wake()
  }

  /** Notifies the other nodes, once for all writes of a short time. */
  #notifyNodes(key: string): void {
    if (this.#notifying.has(key)) return
    this.#notifying.add(key)
    setTimeout(() => {
      this.#notifying.delete(key)
      this.#deps.bus.publish(channel, key)
    }, feedNoticeMs)
  }

  #listen(): void {
    this.#unsubscribe ??= this.#deps.bus.subscribe(channel, (key) => this.#wakeAll(key))
    this.#poll ??= setInterval(() => {
      for (const key of this.#followers.keys()) this.#wakeAll(key)
    }, feedPollMs)
    this.#poll.unref()
  }
}

const keyOf = ({ namespace, instanceId }: DatabaseAddress): string => `${namespace}\n${instanceId ?? ''}`
