/**
 * Databases of dynamic namespaces: one file per instance, a bounded pool of open ones, and an empty in-memory stand-in
 * for instances without a file. The first effective write creates the file: it is first rehearsed on the stand-in, so a
 * rejected write creates nothing.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type PageQuery, type PageRows, plainPage } from '../sql/page-query.ts'
import type { Database, DatabaseAddress } from '../sql/sql.ts'
import type { SqlText } from '../sql/sql-text.ts'
import { type Connection, openConnection } from './connection.ts'
import { openSqliteDatabase, type SharedThreads, type SqliteDatabase } from './database.ts'
import { sqliteDialect } from './dialect.ts'
import { readScalar } from './readers/adaptive-reader.ts'
import { rehearse, runAtOnce } from './transaction.ts'

/** Creates or migrates the tables of a newly opened instance. */
export type PrepareInstance = (database: Database, address: DatabaseAddress) => Promise<void>

type StandIn = Pick<Database, 'all' | 'readPage' | 'readLargePage'>

/** Reads of an (almost) empty in-memory connection, done synchronously. */
function standInOf(connection: Connection): StandIn {
  const read = <Row>(query: PageQuery, bytesMax: number): PageRows<Row> => {
    const some = connection.some(plainPage(query), bytesMax)
    query.here?.(some.rows)
    const { alongside, here } = query
    return { ...some, alongside: alongside && !here ? readScalar(connection, alongside) : null } as PageRows<Row>
  }
  return {
    async all<Row>(query: SqlText, onRead?: (rows: Row[]) => void) {
      const rows = connection.all(query) as Row[]
      onRead?.(rows)
      return rows
    },
    readPage: async <Row>(query: PageQuery) => read<Row>(query, Number.POSITIVE_INFINITY),
    readLargePage: async <Row>(query: PageQuery, bytesMax: number) => read<Row>(query, bytesMax),
  }
}

const plainName = /^[a-z0-9_-]{1,100}$/
const base32 = 'abcdefghijklmnopqrstuvwxyz234567'

/**
 * File name of an instance. Ids that a file system might confuse (case, dots, length) become `=` and base 32; `=` is
 * not part of a plain name, so two ids never share a file.
 */
function fileNameOf(instanceId: string): string {
  if (plainName.test(instanceId)) return instanceId
  let bits = 0
  let width = 0
  let text = '='
  for (const byte of Buffer.from(instanceId)) {
    bits = (bits << 8) | byte
    for (width += 8; width >= 5; width -= 5) text += base32[(bits >>> (width - 5)) & 31]
    bits &= (1 << width) - 1
  }
  return width > 0 ? text + base32[(bits << (5 - width)) & 31] : text
}

/** `instances/<namespace>/<two hex digits>/<name>.sqlite`: folders stay small with a million instances. */
export function instancePath(folder: string, namespace: string, instanceId: string): string {
  const shard = createHash('sha256').update(instanceId).digest('hex').slice(0, 2)
  return join(folder, 'instances', namespace, shard, `${fileNameOf(instanceId)}.sqlite`)
}

const isRejected = (promise: Promise<unknown>): Promise<boolean> =>
  promise.then(
    () => false,
    () => true,
  )

interface Opened {
  readonly database: SqliteDatabase
  readonly address: DatabaseAddress
  ready: Promise<void>
  /** Calls that use the database; only an unused one may be closed. */
  users: number
}

export interface Instances {
  database(address: DatabaseAddress & { instanceId: string }): Database
  prepareAgain(): void
  /** See `Sql`. */
  checkpointIdle(): Promise<void>
  /** Closes half of the unused databases. Returns false if there is none. */
  releaseHandles(): boolean
  /** See `Sql`. A single damaged instance does not count: the other instances and the server still work. */
  findFault(): Promise<string | null>
  close(): Promise<void>
}

export interface InstancesOptions {
  readonly folder: string
  readonly shared: SharedThreads
  readonly prepare: PrepareInstance
  /** Maximum number of open databases. */
  readonly openMax: number
  /** Throws if the data folder was removed or replaced. */
  readonly checkFolder: () => void
}

export function createInstances({ folder, shared, prepare, openMax, checkFolder }: InstancesOptions): Instances {
  /** In order of last use: the first is the least recently used. */
  const opened = new Map<string, Opened>()
  const standIns = new Map<string, Promise<Connection>>()
  let lastRehearsal: Promise<unknown> = Promise.resolve()

  /** Closes the least recently used databases until `most` are open. Returns the number closed. */
  function closeUnused(most: number): number {
    const before = opened.size
    for (const [path, { database, users }] of opened) {
      if (opened.size <= most) break
      // One in use stays open; the bound is restored when it is released. So does one in recovery: opened again, it
      // would not know that its log may be incomplete.
      if (users > 0 || database.writer.pending > 0 || database.writer.failed) continue
      opened.delete(path)
      database.close()
    }
    return before - opened.size
  }

  function open(path: string, address: DatabaseAddress): Opened {
    // A folder that was removed must not be created again with one instance in it.
    checkFolder()
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const database = openSqliteDatabase(path, shared, { small: true })
    return { database, address, ready: prepare(database, address), users: 0 }
  }

  /** Opens the database if necessary and keeps it open while `task` runs. */
  async function use<T>(path: string, address: DatabaseAddress, task: (database: Database) => Promise<T>): Promise<T> {
    const found = opened.get(path) ?? open(path, address)
    opened.delete(path)
    opened.set(path, found)
    found.users += 1
    closeUnused(openMax)
    try {
      await found.ready
      return await task(found.database)
    } finally {
      found.users -= 1
      // A database whose preparation failed is opened again by the next call.
      if (found.users === 0 && (await isRejected(found.ready)) && opened.delete(path)) found.database.close()
    }
  }

  /**
   * An empty in-memory database of a namespace. Reads and rehearsals have one each, since rows of a rehearsal must
   * never be read.
   */
  function standIn(namespace: string, purpose: 'read' | 'rehearse'): Promise<Connection> {
    const key = `${namespace}:${purpose}`
    let found = standIns.get(key)
    if (!found) {
      const connection = openConnection(':memory:', { small: true })
      const database: Database = {
        dialect: sqliteDialect,
        ...standInOf(connection),
        write: (work) => runAtOnce(connection, work),
        async synced() {},
      }
      found = prepare(database, { namespace, instanceId: null }).then(() => connection)
      standIns.set(key, found)
    }
    return found
  }

  /** Rehearsals share one connection, so they run one after another. */
  function rehearseSerially<T>(
    namespace: string,
    work: Parameters<typeof rehearse<T>>[1],
  ): ReturnType<typeof rehearse<T>> {
    const result = lastRehearsal.then(async () => rehearse(await standIn(namespace, 'rehearse'), work))
    lastRehearsal = result.catch(() => undefined)
    return result
  }

  return {
    database(address) {
      const path = instancePath(folder, address.namespace, address.instanceId)
      const exists = (): boolean => opened.has(path) || existsSync(path)
      /** Reads the stand-in synchronously while the instance has no file, so a first write cannot happen in between. */
      const reading = async <T>(task: (database: StandIn) => Promise<T>): Promise<T> => {
        if (exists()) return use(path, address, task)
        const empty = await standIn(address.namespace, 'read')
        return exists() ? use(path, address, task) : task(standInOf(empty))
      }
      return {
        dialect: sqliteDialect,
        async all<Row>(query: SqlText, onRead?: (rows: Row[]) => void, caller?: string) {
          return reading((database) => database.all<Row>(query, onRead, caller))
        },
        async readPage<Row>(query: PageQuery) {
          return reading((database) => database.readPage<Row>(query))
        },
        async readLargePage<Row>(query: PageQuery, bytesMax: number) {
          return reading((database) => database.readLargePage<Row>(query, bytesMax))
        },
        async write(work, options) {
          if (!exists()) {
            const { result, wrote } = await rehearseSerially(address.namespace, work)
            if (!wrote || options?.creates === false) return result
            // Concurrent first writes may each call this for the one instance they create.
            await options?.beforeCreate?.()
          }
          return use(path, address, (database) => database.write(work))
        },
        async synced() {
          // A closed database has no pending sync.
          await opened.get(path)?.database.synced()
        },
      }
    },
    prepareAgain() {
      for (const one of opened.values()) {
        one.ready = one.ready.then(() => prepare(one.database, one.address))
        // The next call on the database reports the failure.
        one.ready.catch(() => undefined)
      }
      standIns.clear()
    },
    async checkpointIdle() {
      for (const [path, one] of [...opened]) {
        // One that was closed meanwhile has checkpointed its log.
        if (opened.get(path) !== one) continue
        one.users += 1
        await one.database.checkpointIdle()
        one.users -= 1
      }
    },
    releaseHandles: () => closeUnused(Math.floor(opened.size / 2)) > 0,
    async findFault() {
      for (const { database } of opened.values()) {
        const fault = await database.findFault()
        if (fault !== null && !database.isDamaged) return fault
      }
      return null
    },
    async close() {
      for (const { database } of opened.values()) {
        await database.writer.idle()
        database.close()
      }
      opened.clear()
      for (const connection of await Promise.all(standIns.values())) connection.close()
      standIns.clear()
    },
  }
}
