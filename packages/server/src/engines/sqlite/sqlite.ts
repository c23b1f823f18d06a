/**
 * The embedded engine: the `Sql` port on SQLite files in the data folder. `databases/<namespace>.sqlite` per static
 * namespace, `instances/…` per instance of a dynamic one. One process per folder, enforced by a lock that ends with the
 * process.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Clock, systemClock } from '../../base/clock.ts'
import { readHandleLimit } from '../../base/files/file-handles.ts'
import { fillReserve, onHandleShortage } from '../../base/files/open-files.ts'
import { handlesPerDatabase, instanceHandlesShare, openInstancesMax, openInstancesMin } from '../../limits/sqlite.ts'
import { createDiskProbe, withinProbeTime } from '../disk/disk-probe.ts'
import { rememberIdentity } from '../disk/folder-identity.ts'
import { folderTaken, lockFileName, lockFolder } from '../disk/folder-lock.ts'
import { databasesIn, openKnownDatabases } from '../disk/known-databases.ts'
import type { Sql } from '../sql/sql.ts'
import { openCheckpointer } from './checkpoint.ts'
import type { SharedThreads } from './database.ts'
import { InstanceDatabase, type InstanceStore } from './instances/instance-database.ts'
import { createInstanceList } from './instances/instance-list.ts'
import { InstancePool, type PrepareInstance } from './instances/instance-pool.ts'
import { StandIns } from './instances/stand-ins.ts'
import { ReaderThreads } from './readers/reader-threads.ts'
import { createSqliteScans } from './scans/scans.ts'
import { StaticDatabases } from './static-databases.ts'

/** Instance databases that a process with so many file handles keeps open. */
export const instancesMaxOf = (handles: number): number =>
  Math.max(
    openInstancesMin,
    Math.min(openInstancesMax, Math.floor((handles * instanceHandlesShare) / handlesPerDatabase)),
  )

/** Identifies the folder's history. Backups leave it out, so a restored folder starts a new history. */
const originFile = 'history'

function readOrigin(folder: string): string {
  const path = join(folder, originFile)
  if (!existsSync(path)) {
    // Write and rename: a partial file would be read as a complete one.
    writeFileSync(`${path}.new`, `${crypto.randomUUID()}\n`, { mode: 0o600, flush: true })
    renameSync(`${path}.new`, path)
  }
  return readFileSync(path, 'utf8').trim()
}

const foldersIn = (path: string): string[] => (existsSync(path) ? readdirSync(path) : [])

/** Releases the lock if the next step fails. */
function orRelease<T>(lock: { close(): void }, step: () => T): T {
  try {
    return step()
  } catch (error) {
    lock.close()
    throw error
  }
}

/**
 * Opens the data folder; creates it if it is missing. Throws `EngineError` `unavailable` when another process serves it
 * or when data is missing.
 */
export function openSqlite(options: {
  folder: string
  prepareInstance: PrepareInstance
  instancesMax?: number
  clock?: Clock
  /** See `openKnownDatabases`. */
  acceptsLoss?: boolean
}): Sql {
  const { folder, prepareInstance, clock = systemClock, acceptsLoss = false } = options
  mkdirSync(join(folder, 'databases'), { recursive: true, mode: 0o700 })
  const lock = lockFolder(folder, folderTaken)
  fillReserve()
  const known = orRelease(lock, () =>
    openKnownDatabases(join(folder, 'databases'), { label: 'databases', acceptsLoss }),
  )
  const checkFolder = rememberIdentity('The data folder', [folder, join(folder, lockFileName)])
  const probe = createDiskProbe(join(folder, 'databases'), 'the data folder')
  const origin = readOrigin(folder)
  const shared: SharedThreads = {
    checkpointer: openCheckpointer(),
    threads: new ReaderThreads(),
    scans: createSqliteScans(),
    clock,
  }
  const statics = new StaticDatabases({ folder: join(folder, 'databases'), shared, known, checkFolder })
  const openMax = options.instancesMax ?? instancesMaxOf(readHandleLimit())
  const pool = new InstancePool({ shared, prepare: prepareInstance, openMax, checkFolder })
  const standIns = new StandIns(prepareInstance)
  const instances: InstanceStore = { folder, pool, standIns }

  const findInstances = createInstanceList({ folder, opened: (namespace) => pool.instancesOf(namespace) })

  const forget = onHandleShortage(() => pool.releaseHandles())

  const findDatabaseFault = async (): Promise<string | null> => (await statics.findFault()) ?? pool.findFault()

  /** A folder that was removed needs no mark, and must not prevent the process from ending. */
  function markClosed(): void {
    try {
      checkFolder()
      known.markClosed()
    } catch {
      // Without the mark the next start checks for lost logs.
    }
  }

  return {
    database({ namespace, instanceId }) {
      if (instanceId !== null) return new InstanceDatabase({ namespace, instanceId }, instances)
      return statics.find(namespace)
    },
    keepsInstancesApart: true,
    findInstances,
    origin: async () => origin,
    pauseWrites: () => statics.pauseWrites(),
    prepareAgain() {
      pool.prepareAgain()
      standIns.prepareAgain()
    },
    namespaces: async () => [...databasesIn(join(folder, 'databases')), ...foldersIn(join(folder, 'instances'))],
    async checkpointIdle() {
      await statics.checkpointIdle()
      await pool.checkpointIdle()
    },
    circuit: null,
    async findFault() {
      try {
        checkFolder()
      } catch (error) {
        return (error as Error).message
      }
      return (await probe()) ?? withinProbeTime(findDatabaseFault(), 'The disk does not answer (a database)')
    },
    async close() {
      forget()
      // A process that reads a file would keep its log from being emptied.
      await shared.scans.close()
      await pool.close()
      await standIns.close()
      await statics.close()
      markClosed()
      await shared.checkpointer.close()
      shared.threads.close()
      lock.close()
    },
  }
}
