/**
 * Dispatches the change logs of all databases whose changes functions wait for. The log of a static namespace is
 * followed all the time. An instance with a database of its own is marked before its first write after a rest, so that
 * a crash leaves no change behind that nothing knows of, and is forgotten when it rests again.
 */
import type { Clock } from '../../../base/clock.ts'
import { createSemaphore } from '../../../base/concurrency/semaphore.ts'
import type { Log } from '../../../base/log.ts'
import type { Database, DatabaseAddress } from '../../../engines/sql/sql.ts'
import { dispatcherRestMs, dispatchersReadingMax } from '../../../limits/function-jobs.ts'
import type { NewJob } from '../jobs/job.ts'
import type { JobStore } from '../jobs/job-store.ts'
import type { Backlog } from './backlog.ts'
import type { JobsOf } from './change-hooks.ts'
import { type ChangeLog, type ChangeLogs, keyOfLog } from './change-logs.ts'
import { LogDispatcher } from './log-dispatcher.ts'
import type { Positions } from './positions.ts'
import { StoredLogs } from './stored-logs.ts'

/** What is dispatched. */
export interface Dispatched {
  /** The namespaces whose changes functions wait for, and whether each is dynamic. */
  readonly namespaces: ReadonlyMap<string, { readonly instance: boolean }>
  readonly jobsOf: JobsOf
}

export interface DispatcherDeps {
  readonly logs: ChangeLogs
  readonly positions: Positions
  readonly database: Database
  readonly store: JobStore
  readonly backlog: Backlog
  /** Whether each instance has a log of its own. */
  readonly keepsInstancesApart: boolean
  /** Called with the jobs that were added. */
  readonly onAdded: (jobs: readonly NewJob[]) => void
  readonly clock: Clock
  readonly log: Log
}

interface Instance {
  /** Writes under way. */
  writers: number
  lastWriteMs: number
  /** Writes that have ended. */
  writes: number
  /** `writes` when everything was found to be dispatched. */
  writesAtRest: number | null
  /** Settles once the mark is stored. */
  marked: Promise<void>
  isMarked: boolean
}

export class Dispatcher {
  readonly #deps: DispatcherDeps
  #dispatched: Dispatched = { namespaces: new Map(), jobsOf: () => [] }
  #dispatchers = new Map<string, LogDispatcher>()
  #isStopped = false
  readonly #instances = new Map<string, Instance>()
  /** Marks that are being removed. */
  readonly #resting = new Map<string, Promise<unknown>>()
  readonly #reading = createSemaphore({ running: dispatchersReadingMax, waiting: Number.POSITIVE_INFINITY })
  /** The logs with positions that this process has not yet seen. */
  readonly #stored: StoredLogs

  constructor(deps: DispatcherDeps) {
    this.#deps = deps
    this.#stored = new StoredLogs(deps, (address, version) => this.#takeUp(address, version))
  }

  /** Logs that are dispatched by this node now. */
  get size(): number {
    return this.#dispatchers.size
  }

  /** Age of the oldest change that this node has not dispatched, at most, in milliseconds; 0 where all are. */
  lagMs(): number {
    const nowMs = this.#deps.clock.now()
    let lagMs = this.#stored.lagMs(nowMs)
    for (const dispatcher of this.#dispatchers.values()) lagMs = Math.max(lagMs, dispatcher.lagMs(nowMs))
    return lagMs
  }

  /**
   * Takes other hooks into use: from now on, changes of their namespaces are dispatched. In the background, instances
   * that are marked are dispatched, and positions of namespaces without hooks are forgotten.
   */
  async configure(next: Dispatched): Promise<void> {
    const { positions, logs } = this.#deps
    const statics: DatabaseAddress[] = []
    for (const [namespace, { instance }] of next.namespaces) {
      if (instance && this.#deps.keepsInstancesApart) continue
      const log = logs.changeLog({ namespace, instanceId: null })
      await positions.ensure(log.address, () => log.currentPosition())
      statics.push(log.address)
    }
    this.#stored.stop()
    this.#dispatched = next
    const outdated = [...this.#dispatchers.values()].filter(({ address }) => !next.namespaces.has(address.namespace))
    await Promise.all(outdated.map(({ address }) => this.#unfollow(address)))
    for (const address of statics) this.#follow(address)
    this.#stored.start()
  }

  /** Dispatches an instance that is marked since an earlier start, or forgets a position that no function needs. */
  async #takeUp(address: DatabaseAddress, version: number): Promise<void> {
    const { positions } = this.#deps
    if (!this.#dispatched.namespaces.has(address.namespace)) {
      await positions.remove(address, version)
      return
    }
    const key = keyOfLog(address)
    // It may have been written since the list was read, and rest again.
    await this.#resting.get(key)
    if (this.#dispatchers.has(key) || !(await positions.find(address)) || this.#isStopped) return
    await this.#follow(address).finishDue()
  }

  /**
   * To be called before a write; where it returns a promise, the write begins once that resolves, and fails if it
   * rejects. `leave` must follow, unless it returns false.
   */
  enter(address: DatabaseAddress): Promise<void> | null | false {
    const { keepsInstancesApart, clock } = this.#deps
    if (address.instanceId === null || !keepsInstancesApart) return false
    if (!this.#dispatched.namespaces.has(address.namespace)) return false
    const key = keyOfLog(address)
    const known = this.#instances.get(key)
    if (known) {
      known.writers++
      known.lastWriteMs = clock.now()
      return known.isMarked ? null : known.marked
    }
    const instance: Instance = {
      writers: 1,
      lastWriteMs: clock.now(),
      writes: 0,
      writesAtRest: null,
      marked: this.#mark(address),
      isMarked: false,
    }
    this.#instances.set(key, instance)
    instance.marked.then(
      () => {
        instance.isMarked = true
      },
      () => {
        if (this.#instances.get(key) === instance) this.#instances.delete(key)
      },
    )
    return instance.marked
  }

  /** To be called after the write that `enter` announced, whatever became of it. */
  leave(address: DatabaseAddress): void {
    const instance = this.#instances.get(keyOfLog(address))
    if (!instance) return
    instance.writers--
    instance.writes++
    instance.lastWriteMs = this.#deps.clock.now()
  }

  /** Resolves when what was written before the call has become jobs. */
  async finishDue(): Promise<void> {
    await this.#stored.finished()
    await Promise.all([...this.#dispatchers.values()].map((dispatcher) => dispatcher.finishDue()))
  }

  /** Stops after the transactions under way; other nodes can continue at once. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#stored.stop()
    await Promise.all([...this.#dispatchers.values()].map((dispatcher) => dispatcher.stop()))
    // What was taken up last is not followed any more.
    await this.#stored.finished()
    this.#dispatchers.clear()
    await this.#deps.positions.release()
  }

  async #mark(address: DatabaseAddress): Promise<void> {
    await this.#resting.get(keyOfLog(address))
    const log = this.#deps.logs.changeLog(address)
    await this.#deps.positions.ensure(address, () => log.currentPosition())
    this.#follow(address)
  }

  #follow(address: DatabaseAddress): LogDispatcher {
    const key = keyOfLog(address)
    const known = this.#dispatchers.get(key)
    if (known) return known
    const { logs, positions, database, store, backlog, onAdded, clock, log } = this.#deps
    const changeLog = logs.changeLog(address)
    const isInstance = address.instanceId !== null
    const dispatcher = new LogDispatcher({
      changeLog: isInstance ? this.#bounded(changeLog) : changeLog,
      positions,
      database,
      store,
      jobsOf: (change, namespace) => this.#dispatched.jobsOf(change, namespace),
      onAdded,
      room: backlog.room,
      ...(isInstance ? { onRest: ({ version }) => this.#rest(address, version) } : {}),
      clock,
      log,
    })
    this.#dispatchers.set(key, dispatcher)
    return dispatcher
  }

  /** Bounds the instances that are read at once. */
  #bounded(changeLog: ChangeLog): ChangeLog {
    const read: ChangeLog['read'] = (position, size) =>
      this.#reading.run(() => changeLog.read(position, size)) as ReturnType<ChangeLog['read']>
    return { ...changeLog, read }
  }

  async #unfollow(address: DatabaseAddress): Promise<void> {
    const key = keyOfLog(address)
    const dispatcher = this.#dispatchers.get(key)
    this.#dispatchers.delete(key)
    this.#instances.delete(key)
    await dispatcher?.stop()
  }

  /** Forgets an instance that has been dispatched completely and is not written any more. */
  async #rest(address: DatabaseAddress, version: number): Promise<boolean> {
    const key = keyOfLog(address)
    const instance = this.#instances.get(key)
    if (instance) {
      if (instance.writers > 0 || !instance.isMarked) return false
      if (this.#deps.clock.now() - instance.lastWriteMs < dispatcherRestMs) return false
      // A write may have ended after the log was read: the next read, which begins now, has seen it.
      const { writes } = instance
      if (instance.writesAtRest !== writes) {
        instance.writesAtRest = writes
        return false
      }
    }
    // From here on a write marks the instance again, after this removal.
    this.#instances.delete(key)
    this.#dispatchers.delete(key)
    const removing = this.#deps.positions.remove(address, version)
    const removed = removing.catch(() => undefined).finally(() => this.#resting.delete(key))
    this.#resting.set(key, removed)
    await removing
    return true
  }
}
