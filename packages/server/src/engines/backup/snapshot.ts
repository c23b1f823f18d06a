/**
 * A SQLite file as it was at one moment, while others go on writing to it: a read transaction, copied page by page. Not
 * `VACUUM INTO`, which numbers rows anew that somebody's index may refer to.
 */
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { backup, DatabaseSync } from 'node:sqlite'
import { backupPagesPerStep } from '../../limits/jobs.ts'
import { EngineError } from '../sql/error.ts'

export interface Snapshot {
  /** Writes the file's state into a file of its own, replacing it. */
  copyTo(path: string): Promise<void>
  close(): void
}

/** The state that is committed when this returns. Must be closed. Throws `EngineError` `unavailable`. */
export function openSnapshot(path: string): Snapshot {
  const database = new DatabaseSync(path, { readOnly: true })
  try {
    database.exec('PRAGMA busy_timeout = 5000')
    database.exec('BEGIN')
    // The transaction begins with the first read.
    database.prepare('SELECT count(*) FROM sqlite_schema').get()
  } catch (error) {
    database.close()
    throw new EngineError('unavailable', `${path} is no database that can be read`, [], error)
  }
  return {
    async copyTo(target) {
      rmSync(target, { force: true })
      await backup(database, target, { rate: backupPagesPerStep })
      // An empty database has no pages, and so no file.
      if (!existsSync(target)) writeFileSync(target, '', { mode: 0o600 })
    },
    close: () => database.close(),
  }
}

export interface ChangeWatch {
  /** Whether anything was committed to the file since the watch began. */
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
    throw new EngineError('unavailable', `${path} is no database that can be read`, [], error)
  }
}
