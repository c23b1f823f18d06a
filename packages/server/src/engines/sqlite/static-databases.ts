/** The databases of static namespaces: a file each, which the first use creates and which stays open from then on. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { KnownDatabases } from '../disk/known-databases.ts'
import { EngineError } from '../sql/error.ts'
import type { Database } from '../sql/sql.ts'
import { openSqliteDatabase, type SharedThreads, type SqliteDatabase } from './database.ts'
import { NewDatabase } from './new-database.ts'

export interface StaticDatabasesDeps {
  /** Of the files. */
  readonly folder: string
  readonly shared: SharedThreads
  readonly known: KnownDatabases
  /** Throws if the data folder is not the one that was opened. */
  readonly checkFolder: () => void
}

export class StaticDatabases {
  readonly #deps: StaticDatabasesDeps
  readonly #opened = new Map<string, SqliteDatabase>()
  /** Those of all writers while writes are paused. */
  #pauses: Promise<() => void>[] | null = null
  #isClosed = false

  constructor(deps: StaticDatabasesDeps) {
    this.#deps = deps
  }

  /** An existing file is opened at once, so that a start finds out if it is damaged. Throws `EngineError`. */
  find(namespace: string): Database {
    if (this.#opened.has(namespace) || existsSync(this.#pathOf(namespace))) return this.#open(namespace)
    return new NewDatabase(() => this.#open(namespace))
  }

  /** See `Sql`. */
  async pauseWrites(): Promise<() => void> {
    const pauses = [...this.#opened.values()].map(({ writer }) => writer.pause())
    this.#pauses = pauses
    await Promise.all(pauses)
    return () => {
      this.#pauses = null
      for (const pause of pauses) void pause.then((release) => release())
    }
  }

  async checkpointIdle(): Promise<void> {
    for (const database of this.#opened.values()) await database.checkpointIdle()
  }

  async findFault(): Promise<string | null> {
    for (const database of this.#opened.values()) {
      const fault = await database.findFault()
      if (fault !== null) return fault
    }
    return null
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const database of this.#opened.values()) {
      await database.writer.idle()
      database.close()
    }
    this.#opened.clear()
  }

  #pathOf(namespace: string): string {
    return join(this.#deps.folder, `${namespace}.sqlite`)
  }

  #open(namespace: string): SqliteDatabase {
    const opened = this.#opened.get(namespace)
    if (opened) return opened
    if (this.#isClosed) throw new EngineError('unavailable', 'The data folder is closed')
    const { shared, known, checkFolder } = this.#deps
    checkFolder()
    const database = openSqliteDatabase(this.#pathOf(namespace), shared, {
      onEpoch: (epoch) => known.epochBegan(namespace, epoch),
      mapping: { isSuspect: () => known.isSuspect(namespace), onMap: () => known.mapping(namespace) },
    })
    this.#opened.set(namespace, database)
    known.opened(namespace)
    this.#pauses?.push(database.writer.pause())
    return database
  }
}
