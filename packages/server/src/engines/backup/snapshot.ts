/**
 * Snapshot of a SQLite file while other processes write to it: a read transaction, copied page by page. Not `VACUUM
 * INTO`, which renumbers rows that an index may reference.
 */
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { backup, DatabaseSync } from 'node:sqlite'
import { backupPagesPerStep } from '../../limits/jobs.ts'
import { EngineError } from '../sql/error.ts'

export interface Snapshot {
  /** Copies the snapshot to a file, replacing it. */
  copyTo(path: string): Promise<void>
  close(): void
}

/** Opens a snapshot of the state committed when this returns. Must be closed. Throws `EngineError` `unavailable`. */
export function openSnapshot(path: string): Snapshot {
  const database = new DatabaseSync(path, { readOnly: true })
  try {
    database.exec('PRAGMA busy_timeout = 5000')
    database.exec('BEGIN')
    // The transaction begins with the first read.
    database.prepare('SELECT count(*) FROM sqlite_schema').get()
  } catch (error) {
    database.close()
    throw new EngineError('unavailable', `${path} cannot be read as a database`, [], error)
  }
  return {
    async copyTo(target) {
      rmSync(target, { force: true })
      await backup(database, target, { rate: backupPagesPerStep })
      // An empty database has no pages, and thus no file.
      if (!existsSync(target)) writeFileSync(target, '', { mode: 0o600 })
    },
    close: () => database.close(),
  }
}

export interface ChangeWatch {
  /** Whether anything was committed since the watch began. */
  hasChanged(): boolean
  close(): void
}

/** Watches a SQLite file that other processes may write to. Must be closed. Throws `EngineError` `unavailable`. */
export function watchChanges(path: string): ChangeWatch {
  const database = new DatabaseSync(path, { readOnly: true })
  const version = (): unknown => database.prepare('PRAGMA data_version').get()?.data_version
  try {
    database.exec('PRAGMA busy_timeout = 5000')
    const before = version()
    return { hasChanged: () => version() !== before, close: () => database.close() }
  } catch (error) {
    database.close()
    throw new EngineError('unavailable', `${path} cannot be read as a database`, [], error)
  }
}
