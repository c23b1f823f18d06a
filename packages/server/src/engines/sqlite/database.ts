/**
 * One SQLite file as a `Database`: a connection that reads, a connection that writes in groups, and the sync of its
 * log. Reads have a connection of their own and never see uncommitted rows.
 */
import fs, { closeSync, fstatSync, openSync } from 'node:fs'
import { sep } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { withHandles } from '../../base/files/open-files.ts'
import { createDiskFaults, isDamage } from '../disk/disk-faults.ts'
import { rememberIdentity } from '../disk/folder-identity.ts'
import { createLogEpoch } from '../disk/log-epoch.ts'
import { EngineError } from '../sql/error.ts'
import type { PageQuery, PageRows } from '../sql/page-query.ts'
import type { Database, SqlRow, Transaction } from '../sql/sql.ts'
import { type SqlText, sql } from '../sql/sql-text.ts'
import { type Checkpointer, createCheckpointPlan } from './checkpoint.ts'
import { type Connection, type ConnectionOptions, checkpointBytesOf, openConnection } from './connection.ts'
import { sqliteDialect } from './dialect.ts'
import { createAdaptiveReader } from './readers/adaptive-reader.ts'
import { createReadBatcher } from './readers/read-batcher.ts'
import type { ReaderThreads } from './readers/reader-threads.ts'
import { createRecovery } from './recovery.ts'
import { createWriter, type Writer } from './writer.ts'

export interface SqliteDatabase extends Database {
  readonly writer: Writer
  /** Checkpoints and empties the write-ahead log after `walQuietMs` without writes. Never rejects. */
  checkpointIdle(): Promise<void>
  /** Why writes cannot be acknowledged, or null. After a failure it attempts a probe write. */
  findFault(): Promise<string | null>
  /** Whether the file is corrupt. */
  readonly isDamaged: boolean
  close(): void
}

/** Threads shared by all databases of the process. */
export interface SharedThreads {
  readonly checkpointer: Checkpointer
  readonly threads: ReaderThreads
  readonly clock: Clock
}

/** The handles of one database. */
interface Opened {
  readonly writing: Connection
  readonly reading: Connection
  /** File descriptor of the log, which exists as long as the writing connection. */
  readonly log: number
}

/**
 * Opens every handle the database will ever need, so that none can be refused later: a log that cannot be opened during
 * a commit would look like a failed disk.
 */
function openHandles(path: string, options: ConnectionOptions): Opened {
  const firstRead = sql`SELECT 1 FROM sqlite_schema LIMIT 1`
  const undo: (() => void)[] = []
  try {
    const writing = openConnection(path, options)
    undo.push(() => writing.close())
    writing.all(firstRead)
    const reading = openConnection(path, { ...options, readonly: true })
    undo.push(() => reading.close())
    reading.all(firstRead)
    return { writing, reading, log: openSync(`${path}-wal`, 'r') }
  } catch (error) {
    for (const close of undo.toReversed()) close()
    if (error instanceof EngineError) throw error
    throw new EngineError('unavailable', 'The database cannot be opened', [], error)
  }
}

/** The last two path segments: enough to find the file in the data folder. */
const nameOf = (path: string): string => path.split(sep).slice(-2).join('/')

/** Writes one page to the log, whether or not the value changes; nothing else uses `application_id`. */
const writeProbe = (tx: Transaction): Promise<number> => tx.run(sql`PRAGMA application_id = 0`)

export interface DatabaseOptions extends ConnectionOptions {
  /** Called when the log starts an epoch (`log-epoch`); without it the log has no epochs. */
  readonly onEpoch?: (epoch: number) => void
}

/** Opens or creates the file. Close only while idle. Throws `EngineError` `unavailable`. */
export function openSqliteDatabase(
  path: string,
  { checkpointer, threads, clock }: SharedThreads,
  { onEpoch, ...options }: DatabaseOptions = {},
): SqliteDatabase {
  const name = nameOf(path)
  const faults = createDiskFaults(name)
  const noting: ConnectionOptions = { ...options, onFault: (error) => faults.note(error) }
  const { writing, reading, log } = withHandles(() => openHandles(path, noting))
  const slowReads: ReaderThreads = {
    ...threads,
    read: (file, read, caller) =>
      threads.read(file, read, caller).catch((error: unknown) => {
        // Of a thread's errors, only corruption concerns the file.
        if (isDamage(error)) faults.note(error)
        throw error
      }),
  }
  const reads = createReadBatcher(reading)
  const reader = createAdaptiveReader(reading, path, slowReads)
  const checkIdentity = rememberIdentity(name, [path, `${path}-wal`])

  const syncLog = (): Promise<void> =>
    new Promise((resolve, reject) => fs.fdatasync(log, (error) => (error ? reject(error) : resolve())))

  /** A file without a name is lost with the process: writes to it must not be acknowledged. */
  async function sync(): Promise<void> {
    await syncLog()
    checkIdentity()
    if (faults.reason !== null) faults.clear()
  }

  const epoch = onEpoch
    ? createLogEpoch((number) => writing.exec(`PRAGMA user_version = ${number}`), onEpoch)
    : undefined
  const writer: Writer = createWriter({
    connection: writing,
    sync,
    epoch,
    onGroup: () => plan.afterGroup(),
    onSyncFailed(error) {
      faults.note(error)
      recovery.start()
    },
  })
  const recovery = createRecovery({
    async attempt() {
      checkIdentity()
      const release = await writer.pause()
      try {
        const failure = await checkpointer.recover(path)
        epoch?.checkpointed()
        if (failure !== null) throw new EngineError('unavailable', failure)
        await sync()
        writer.recovered()
      } finally {
        release()
      }
    },
    onFailure: (error) => faults.note(error),
  })
  const plan = createCheckpointPlan({
    checkpoint: async (mode) => {
      await checkpointer.checkpoint(path, mode)
      epoch?.checkpointed()
    },
    clock,
    logBytes: () => fstatSync(log).size,
    checkpointBytes: checkpointBytesOf(options),
    pauseWriter: () => writer.pause(),
  })

  /**
   * Checkpoints before closing. If other processes or threads have the file open, closing the connection would leave
   * the log as it is.
   */
  function emptyLog(): void {
    try {
      writing.exec('PRAGMA busy_timeout = 0')
      writing.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    } catch {
      // The log stays and is read by the next process.
    }
  }

  return {
    dialect: sqliteDialect,
    writer,
    checkpointIdle: () => plan.checkpointIdle(),
    all: <Row = SqlRow>(query: SqlText, onRead?: (rows: Row[]) => void, caller?: string) =>
      reads.read(() => reader.all(query, onRead as ((rows: SqlRow[]) => void) | undefined, caller)) as Promise<Row[]>,
    readPage: <Row = SqlRow>(query: PageQuery) =>
      reads.read(
        () => reader.page(query),
        query.alongside !== undefined && !query.here,
      ) as Promise<PageRows<Row> | null>,
    readLargePage: <Row = SqlRow>(query: PageQuery, bytesMax: number) =>
      reader.largePage(query, bytesMax) as Promise<PageRows<Row>>,
    write: (work) => writer.write(work),
    synced: () => writer.synced(),
    async findFault() {
      try {
        checkIdentity()
      } catch (error) {
        faults.note(error)
        return faults.reason
      }
      if (faults.reason !== null && !faults.isDamaged && !writer.failed)
        await writer.write(writeProbe).catch((error: unknown) => faults.note(error))
      return faults.reason
    },
    get isDamaged() {
      return faults.isDamaged
    },
    close() {
      recovery.stop()
      reads.close()
      reading.close()
      threads.forget(path)
      if (!writer.failed) emptyLog()
      writing.close()
      closeSync(log)
    },
  }
}
