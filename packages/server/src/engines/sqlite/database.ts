/**
 * One SQLite file as a `Database`: a connection that reads, a connection that writes in groups, and the sync of its
 * log. Reads have a connection of their own and never see uncommitted rows.
 */
import fs, { closeSync, fstatSync, openSync, statSync } from 'node:fs'
import { sep } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { withHandles } from '../../base/files/open-files.ts'
import { slowReadBytes } from '../../limits/sqlite.ts'
import { createDiskFaults, type DiskFaults, isDamage } from '../disk/disk-faults.ts'
import { rememberIdentity } from '../disk/folder-identity.ts'
import { createLogEpoch, type LogEpoch } from '../disk/log-epoch.ts'
import { EngineError } from '../sql/error.ts'
import type { PageQuery, PageRows } from '../sql/page-query.ts'
import type { QueryPlan } from '../sql/query-plan.ts'
import type { ScanOptions } from '../sql/scan-queue.ts'
import type { Database, SqlRow, Transaction, WriteOptions } from '../sql/sql.ts'
import { type SqlText, sql } from '../sql/sql-text.ts'
import { type Checkpointer, type CheckpointPlan, createCheckpointPlan } from './checkpoint.ts'
import { type Connection, type ConnectionOptions, checkpointBytesOf, openConnection } from './connection.ts'
import { sqliteDialect } from './dialect.ts'
import { buildIndex } from './index-builder.ts'
import { sqlitePlan } from './query-plan.ts'
import { type AdaptiveReader, createAdaptiveReader } from './readers/adaptive-reader.ts'
import { createFileMapping, type FileMapping, type MappingRecord, mappedFile } from './readers/file-mapping.ts'
import { createReadBatcher, type ReadBatcher } from './readers/read-batcher.ts'
import type { ReaderThreads, ThreadRead } from './readers/reader-threads.ts'
import { createRecovery, type Recovery } from './recovery.ts'
import type { SqliteScans } from './scans/scans.ts'
import type { Work } from './transaction.ts'
import { Writer } from './writer.ts'

/** Threads shared by all databases of the process. */
export interface SharedThreads {
  readonly checkpointer: Checkpointer
  readonly threads: ReaderThreads
  readonly scans: SqliteScans
  readonly clock: Clock
}

/** The handles of one database. */
interface Handles {
  readonly writing: Connection
  readonly reading: Connection
  /** File descriptor of the log, which exists as long as the writing connection. */
  readonly log: number
}

/**
 * Opens every handle the database will ever need, so that none can be refused later: a log that cannot be opened during
 * a commit would look like a failed disk.
 */
function openHandles(path: string, options: ConnectionOptions): Handles {
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

const syncFile = (file: number): Promise<void> =>
  new Promise((resolve, reject) => fs.fdatasync(file, (error) => (error ? reject(error) : resolve())))

/** Writes one page to the log, whether or not the value changes; nothing else uses `application_id`. */
const writeProbe = (tx: Transaction): Promise<number> => tx.run(sql`PRAGMA application_id = 0`)

export interface DatabaseOptions extends ConnectionOptions {
  /** Called when the log starts an epoch (`log-epoch`); without it the log has no epochs. */
  readonly onEpoch?: (epoch: number) => void
  /** Without it the file is never mapped into memory. */
  readonly mapping?: MappingRecord
}

interface SqliteDatabaseDeps extends SharedThreads {
  readonly path: string
  readonly handles: Handles
  readonly faults: DiskFaults
  readonly epoch: LogEpoch | undefined
  readonly checkpointBytes: number
  readonly mapping: MappingRecord | undefined
}

/** Opens or creates the file. Throws `EngineError` `unavailable`. */
export function openSqliteDatabase(
  path: string,
  shared: SharedThreads,
  { onEpoch, mapping, ...options }: DatabaseOptions = {},
): SqliteDatabase {
  const faults = createDiskFaults(nameOf(path))
  const handles = withHandles(() => openHandles(path, { ...options, onFault: (error) => faults.note(error) }))
  const epoch = onEpoch
    ? createLogEpoch((number) => handles.writing.exec(`PRAGMA user_version = ${number}`), onEpoch)
    : undefined
  const checkpointBytes = checkpointBytesOf(options)
  return new SqliteDatabase({ ...shared, path, handles, faults, epoch, mapping, checkpointBytes })
}

export class SqliteDatabase implements Database {
  readonly dialect = sqliteDialect
  readonly readEncodedPage = null
  readonly writer: Writer
  readonly #path: string
  readonly #handles: Handles
  readonly #faults: DiskFaults
  readonly #epoch: LogEpoch | undefined
  readonly #checkpointer: Checkpointer
  readonly #threads: ReaderThreads
  readonly #scans: SqliteScans
  readonly #mapping: FileMapping | null
  readonly #reads: ReadBatcher
  readonly #reader: AdaptiveReader
  readonly #checkpoints: CheckpointPlan
  readonly #recovery: Recovery
  readonly #checkIdentity: () => void
  #writtenAtMs: number | null = null

  constructor({
    path,
    handles,
    faults,
    epoch,
    mapping,
    checkpointBytes,
    checkpointer,
    threads,
    scans,
    clock,
  }: SqliteDatabaseDeps) {
    this.#path = path
    this.#handles = handles
    this.#faults = faults
    this.#epoch = epoch
    this.#checkpointer = checkpointer
    this.#threads = threads
    this.#scans = scans
    this.#mapping = mapping ? createFileMapping(handles.reading, mappedFile(path, mapping)) : null
    this.#reads = createReadBatcher(handles.reading, this.#mapping?.beforeReads)
    this.#reader = createAdaptiveReader(handles.reading, path, {
      read: (file, read, caller) => this.#readInThread(file, read, caller),
    })
    this.#checkIdentity = rememberIdentity(nameOf(path), [path, `${path}-wal`])
    this.writer = new Writer({
      connection: handles.writing,
      epoch,
      sync: () => this.#sync(),
      onGroup: () => {
        this.#writtenAtMs = clock.now()
        this.#mapping?.changed()
        return this.#checkpoints.afterGroup()
      },
      onSyncFailed: (error) => {
        faults.note(error)
        this.#recovery.start()
      },
    })
    this.#recovery = createRecovery({ attempt: () => this.#recover(), onFailure: (error) => faults.note(error) })
    this.#checkpoints = createCheckpointPlan({
      checkpoint: (mode) => this.#checkpoint(mode),
      clock,
      logBytes: () => fstatSync(handles.log).size,
      checkpointBytes,
      pauseWriter: () => this.writer.pause(),
    })
  }

  all<Row = SqlRow>(query: SqlText, onRead?: (rows: Row[]) => void, caller?: string): Promise<Row[]> {
    const read = () => this.#reader.all(query, onRead as ((rows: SqlRow[]) => void) | undefined, caller)
    return this.#reads.read(read) as Promise<Row[]>
  }

  readPage<Row = SqlRow>(query: PageQuery): Promise<PageRows<Row> | null> {
    const hasSeveral = query.scalar !== undefined && !query.onRead
    return this.#reads.read(() => this.#reader.page(query), hasSeveral) as Promise<PageRows<Row> | null>
  }

  readLargePage<Row = SqlRow>(query: PageQuery, bytesMax: number): Promise<PageRows<Row>> {
    return this.#reader.largePage(query, bytesMax) as Promise<PageRows<Row>>
  }

  explain(query: SqlText): Promise<QueryPlan> {
    return this.#reads.read(() => sqlitePlan(this.#handles.reading.plan(query)))
  }

  async scan<Row = SqlRow>(query: SqlText, options: ScanOptions): Promise<Row[]> {
    try {
      return (await this.#scans.read(this.#path, query, options)) as Row[]
    } catch (error) {
      if (isDamage(error)) this.#faults.note(error)
      throw error
    }
  }

  write<T>(work: Work<T>, options?: WriteOptions): Promise<T> {
    return options?.isMigration ? this.#migrate(work) : this.writer.write(work, options?.caller)
  }

  /** An index of a large table is sorted in files, not in memory, while batches keep their savepoints in memory. */
  async #migrate<T>(work: Work<T>): Promise<T> {
    const { writing } = this.#handles
    writing.exec('PRAGMA temp_store = FILE')
    try {
      return await this.writer.write(work)
    } finally {
      writing.exec('PRAGMA temp_store = MEMORY')
    }
  }

  async buildIndexes(statements: readonly SqlText[]): Promise<void> {
    if (statSync(this.#path).size + fstatSync(this.#handles.log).size < slowReadBytes) return
    const release = await this.writer.pause()
    try {
      // One by one: the migration meets the error of one that fails.
      for (const { text } of statements) await buildIndex(this.#path, text).catch(() => undefined)
      this.#mapping?.changed()
    } finally {
      release()
    }
  }

  synced(): Promise<void> {
    return this.writer.synced()
  }

  /** Checkpoints and empties the write-ahead log after `walQuietMs` without writes. Never rejects. */
  checkpointIdle(): Promise<void> {
    return this.#checkpoints.checkpointIdle()
  }

  /** When this process last wrote, in milliseconds since 1970; null if it has not. A checkpoint is not a write. */
  get writtenAtMs(): number | null {
    return this.#writtenAtMs
  }

  /** Whether the file is corrupt. */
  get isDamaged(): boolean {
    return this.#faults.isDamaged
  }

  /** Why writes cannot be acknowledged, or null. After a failure it attempts a probe write. */
  async findFault(): Promise<string | null> {
    const faults = this.#faults
    try {
      this.#checkIdentity()
    } catch (error) {
      faults.note(error)
      return faults.reason
    }
    if (faults.reason !== null && !faults.isDamaged && !this.writer.failed)
      await this.writer.write(writeProbe).catch((error: unknown) => faults.note(error))
    return faults.reason
  }

  /** To be called only while the database is idle. */
  close(): void {
    const { writing, reading, log } = this.#handles
    this.#recovery.stop()
    this.#reads.close()
    this.#mapping?.close()
    reading.close()
    this.#threads.forget(this.#path)
    if (!this.writer.failed) this.#emptyLog()
    writing.close()
    closeSync(log)
  }

  async #readInThread(file: string, read: ThreadRead, caller: string | undefined): Promise<PageRows<SqlRow>> {
    try {
      return await this.#threads.read(file, read, caller)
    } catch (error) {
      // Of a thread's errors, only corruption concerns the file.
      if (isDamage(error)) this.#faults.note(error)
      throw error
    }
  }

  /** A file without a name is lost with the process: writes to it must not be acknowledged. */
  async #sync(): Promise<void> {
    await syncFile(this.#handles.log)
    this.#checkIdentity()
    if (this.#faults.reason !== null) this.#faults.clear()
  }

  async #recover(): Promise<void> {
    this.#checkIdentity()
    const release = await this.writer.pause()
    try {
      const failure = await this.#checkpointer.recover(this.#path)
      this.#epoch?.checkpointed()
      if (failure !== null) throw new EngineError('unavailable', failure)
      await this.#sync()
      this.writer.recovered()
    } finally {
      release()
    }
  }

  async #checkpoint(mode: 'passive' | 'truncate'): Promise<void> {
    await this.#checkpointer.checkpoint(this.#path, mode)
    this.#epoch?.checkpointed()
  }

  /**
   * Checkpoints before closing. If other processes or threads have the file open, closing the connection would leave
   * the log as it is.
   */
  #emptyLog(): void {
    const { writing } = this.#handles
    try {
      writing.exec('PRAGMA busy_timeout = 0')
      writing.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    } catch {
      // The log stays and is read by the next process.
    }
  }
}
