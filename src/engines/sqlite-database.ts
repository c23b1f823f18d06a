/**
 * One SQLite file as the port's `Database`: a connection that reads, a connection that writes in groups, and the sync
 * of its log. Reads never see what is not committed, since they have a connection of their own.
 */
import { closeSync, fdatasync, openSync } from 'node:fs'
import { sqliteDialect } from './dialect-sqlite.ts'
import type { Database, SqlRow } from './sql.ts'
import type { SqlText } from './sql-text.ts'
import { type Checkpointer, createFoldPlan } from './sqlite-checkpoint.ts'
import { type ConnectionOptions, openConnection } from './sqlite-connection.ts'
import { createReadTurns } from './sqlite-read-turns.ts'
import { createPacedReader, type ReaderThreads } from './sqlite-slow-reads.ts'
import { createWriter, type Writer } from './sqlite-writer.ts'

export interface SqliteDatabase extends Database {
  readonly writer: Writer
  close(): void
}

/** Threads that serve all databases of the process. */
export interface SharedThreads {
  readonly checkpointer: Checkpointer
  readonly threads: ReaderThreads
}

/** Opens or creates the file. Close only while idle. */
export function openSqliteDatabase(
  path: string,
  { checkpointer, threads }: SharedThreads,
  options: ConnectionOptions = {},
): SqliteDatabase {
  const writing = openConnection(path, options)
  const reading = openConnection(path, { ...options, readonly: true })
  const reads = createReadTurns(reading, createPacedReader(reading, path, threads))
  let logFile: number | null = null

  /** The log file lives as long as the writing connection, so one handle serves all syncs. */
  const sync = (): Promise<void> =>
    new Promise((resolve, reject) => {
      logFile ??= openSync(`${path}-wal`, 'r')
      fdatasync(logFile, (error) => (error ? reject(error) : resolve()))
    })

  const writer = createWriter({ connection: writing, sync, onGroup: createFoldPlan(checkpointer, path) })
  return {
    dialect: sqliteDialect,
    writer,
    all: <Row = SqlRow>(query: SqlText) => reads.read(query) as Promise<Row[]>,
    write: (work) => writer.write(work),
    synced: () => writer.synced(),
    close() {
      reads.close()
      reading.close()
      writing.close()
      if (logFile !== null) closeSync(logFile)
    },
  }
}
