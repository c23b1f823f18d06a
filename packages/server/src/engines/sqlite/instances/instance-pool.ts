/** The open databases of instances: a bounded number, opened on demand and closed when they are not in use. */
import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { EngineError } from '../../sql/error.ts'
import type { FoundInstance } from '../../sql/instance-search.ts'
import type { Database, DatabaseAddress } from '../../sql/sql.ts'
import { openSqliteDatabase, type SharedThreads, type SqliteDatabase } from '../database.ts'

/** Creates or migrates the tables of a newly opened instance. */
export type PrepareInstance = (database: Database, address: DatabaseAddress) => Promise<void>

interface Opened {
  readonly database: SqliteDatabase
  readonly address: DatabaseAddress
  ready: Promise<void>
  /** Calls that use the database; only an unused one may be closed. */
  users: number
}

export interface InstancePoolOptions {
  readonly shared: SharedThreads
  readonly prepare: PrepareInstance
  /** Maximum number of open databases. */
  readonly openMax: number
  /** Throws if the data folder was removed or replaced. */
  readonly checkFolder: () => void
}

const isRejected = (promise: Promise<unknown>): Promise<boolean> =>
  promise.then(
    () => false,
    () => true,
  )

export class InstancePool {
  readonly #options: InstancePoolOptions
  /** By path, in order of last use: the first is the least recently used. */
  readonly #opened = new Map<string, Opened>()
  #isClosed = false

  constructor(options: InstancePoolOptions) {
    this.#options = options
  }

  /** Whether the database exists, open or not. */
  exists(path: string): boolean {
    return this.#opened.has(path) || existsSync(path)
  }

  /** Opens or creates the database if necessary and keeps it open while `task` runs. */
  async use<T>(path: string, address: DatabaseAddress, task: (database: Database) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new EngineError('unavailable', 'The data folder is closed')
    const found = this.#opened.get(path) ?? this.#open(path, address)
    this.#opened.delete(path)
    this.#opened.set(path, found)
    found.users += 1
    this.#closeUnused(this.#options.openMax)
    try {
      await found.ready
      return await task(found.database)
    } finally {
      found.users -= 1
      // A database whose preparation failed is opened again by the next call.
      if (found.users === 0 && (await isRejected(found.ready)) && this.#opened.delete(path)) found.database.close()
    }
  }

  /** See `Database`. A closed database has no pending sync. */
  async synced(path: string): Promise<void> {
    await this.#opened.get(path)?.database.synced()
  }

  /** See `Sql`. */
  prepareAgain(): void {
    for (const one of this.#opened.values()) {
      one.ready = one.ready.then(() => this.#options.prepare(one.database, one.address))
      // The next call on the database reports the failure.
      one.ready.catch(() => undefined)
    }
  }

  /** See `Sql`. */
  async checkpointIdle(): Promise<void> {
    for (const [path, one] of [...this.#opened]) {
      // One that was closed meanwhile has checkpointed its log.
      if (this.#opened.get(path) !== one) continue
      one.users += 1
      await one.database.checkpointIdle()
      one.users -= 1
    }
  }

  /** The instances of a namespace with an open database, the least recently used first; `writtenAtMs` since opened. */
  instancesOf(namespace: string): readonly FoundInstance[] {
    return [...this.#opened.values()].flatMap(({ address, database: { writtenAtMs } }) =>
      address.namespace === namespace && address.instanceId !== null ? [{ id: address.instanceId, writtenAtMs }] : [],
    )
  }

  /** Closes half of the unused databases. Returns false if there is none. */
  releaseHandles(): boolean {
    return this.#closeUnused(Math.floor(this.#opened.size / 2)) > 0
  }

  /** See `Sql`. A single damaged instance does not count: the other instances and the server still work. */
  async findFault(): Promise<string | null> {
    for (const { database } of this.#opened.values()) {
      const fault = await database.findFault()
      if (fault !== null && !database.isDamaged) return fault
    }
    return null
  }

  /** Waits for the writes under way. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const [path, { database }] of this.#opened) {
      await database.writer.idle()
      // Not a second time, where its preparation has failed meanwhile: its descriptor may be that of another file.
      if (this.#opened.delete(path)) database.close()
    }
  }

  #open(path: string, address: DatabaseAddress): Opened {
    const { checkFolder, prepare, shared } = this.#options
    // A folder that was removed must not be created again with one instance in it.
    checkFolder()
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const database = openSqliteDatabase(path, shared, { small: true })
    return { database, address, ready: prepare(database, address), users: 0 }
  }

  /** Closes the least recently used databases until `most` are open. Returns the number closed. */
  #closeUnused(most: number): number {
    const before = this.#opened.size
    for (const [path, { database, users }] of this.#opened) {
      if (this.#opened.size <= most) break
      // One in use stays open; the bound is restored when it is released. So does one in recovery: opened again, it
      // would not know that its log may be incomplete.
      if (users > 0 || database.writer.pending > 0 || database.writer.failed) continue
      this.#opened.delete(path)
      database.close()
    }
    return before - this.#opened.size
  }
}
