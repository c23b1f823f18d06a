/**
 * Databases of dynamic namespaces: one file per instance, a bounded pool of open ones, and an empty stand-in for those
 * never written. A database comes into being with the first write that changes something: the write is first rehearsed
 * on the stand-in, so a refused one creates nothing.
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

/** Creates or extends the tables of a freshly opened instance. */
export type PrepareInstance = (database: Database, address: DatabaseAddress) => Promise<void>

type StandIn = Pick<Database, 'all' | 'readPage' | 'readLargePage'>

/** Reads of a connection that holds next to nothing, done at once. */
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
 * Ids that a file system might confuse (case, dots, length) become `=` and base 32; `=` is in no plain name, so no two
 * ids share a file.
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
  /** Calls that hold the database right now; only an unused one may be closed. */
  users: number
}

export interface Instances {
  database(address: DatabaseAddress & { instanceId: string }): Database
  prepareAgain(): void
  /** See `Sql`. */
  checkpointIdle(): Promise<void>
  /** Closes half of the databases that are not in use. False where there is none. */
  releaseHandles(): boolean
  /** See `Sql`. One damaged instance does not count: the others, and the server, work. */
  findFault(): Promise<string | null>
  close(): Promise<void>
}

export interface InstancesOptions {
  readonly folder: string
  readonly shared: SharedThreads
  readonly prepare: PrepareInstance
  /** Databases kept open at once. */
  readonly openMax: number
  /** Throws where the data folder is no longer the one that was opened. */
  readonly checkFolder: () => void
}

export function createInstances({ folder, shared, prepare, openMax, checkFolder }: InstancesOptions): Instances {
  /** Insertion order is order of use: the first is the one unused for longest. */
  const opened = new Map<string, Opened>()
  const standIns = new Map<string, Promise<Connection>>()
  let lastRehearsal: Promise<unknown> = Promise.resolve()

  /** Closes those unused for longest until so many are open. Gives how many were closed. */
  function closeUnused(most: number): number {
    const before = opened.size
    for (const [path, { database, users }] of opened) {
      if (opened.size <= most) break
      // One in use stays; the bound is met again when it is let go.
      // So does one that recovers: opened again, it would not know that its log may be incomplete.
      if (users > 0 || database.writer.pending > 0 || database.writer.failed) continue
      opened.delete(path)
      database.close()
    }
    return before - opened.size
  }

  function open(path: string, address: DatabaseAddress): Opened {
    // A folder that was removed must not come into being again with one instance in it.
    checkFolder()
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const database = openSqliteDatabase(path, shared, { small: true })
    return { database, address, ready: prepare(database, address), users: 0 }
  }

  /** Opens the database if need be and holds it open while `task` runs. */
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
      // A database that could not be prepared is opened anew by the next call.
      if (found.users === 0 && (await isRejected(found.ready)) && opened.delete(path)) found.database.close()
    }
  }

  /**
   * An empty database of a namespace, in memory: one to read and another to rehearse on, since a rehearsal's rows must
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

  /** Rehearsals share one connection, so they take turns. */
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
      /** Reads at once from the stand-in while nothing was written: there is no moment in between. */
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
            // Writes that arrive together may each count the one instance they create.
            await options?.beforeCreate?.()
          }
          return use(path, address, (database) => database.write(work))
        },
        async synced() {
          // One that is not open has nothing on its way.
          await opened.get(path)?.database.synced()
        },
      }
    },
    prepareAgain() {
      for (const one of opened.values()) {
        one.ready = one.ready.then(() => prepare(one.database, one.address))
        // Whoever uses the database next is told; nobody is waiting right now.
        one.ready.catch(() => undefined)
      }
      standIns.clear()
    },
    async checkpointIdle() {
      for (const [path, one] of [...opened]) {
        // One that was closed meanwhile has emptied its log.
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
