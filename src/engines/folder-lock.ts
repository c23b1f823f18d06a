/** Who has a folder alone: a lock that the operating system ends however the process ends. */
import { Database as BunDatabase } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { EngineError } from './error.ts'

/** The name of the lock in its folder; beside it SQLite may keep files that begin alike. */
export const lockFileName = 'lock.sqlite'

/**
 * An exclusive transaction on a file of its own in a folder that exists. Must be closed. Throws what `taken` makes of
 * the reason while another process has the folder.
 */
export function lockFolder(folder: string, taken: (reason: unknown) => Error): { close(): void } {
  const lock = new BunDatabase(join(folder, lockFileName))
  try {
    lock.run('BEGIN EXCLUSIVE')
    return lock
  } catch (error) {
    lock.close()
    throw taken(error)
  }
}

/** Said to whoever wants a data folder that is served. */
export const folderTaken = (reason: unknown): EngineError =>
  new EngineError('unavailable', 'Another process is serving this data folder', [], reason)

/** Throws as `lockFolder` does while another process has the folder. A folder without a lock gets none. */
export function checkFolderFree(folder: string): void {
  if (existsSync(join(folder, lockFileName))) lockFolder(folder, folderTaken).close()
}
