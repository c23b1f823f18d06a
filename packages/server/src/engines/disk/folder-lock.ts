/** Exclusive lock on a folder, released by the operating system however the process ends. */
import { Database as BunDatabase } from 'bun:sqlite'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { EngineError } from '../sql/error.ts'

/** Name of the lock file; SQLite may keep files beside it that start with it. */
export const lockFileName = 'lock.sqlite'

/** Beside the lock: the holder's process id, for the error message of others. */
const holderOf = (folder: string): string => join(folder, `${lockFileName}.pid`)

/**
 * Locks a folder with an exclusive transaction on a file in it. Must be closed. Throws the error made by `taken` while
 * another process has the lock.
 */
export function lockFolder(folder: string, taken: (reason: unknown, folder: string) => Error): { close(): void } {
  const lock = new BunDatabase(join(folder, lockFileName))
  try {
    lock.run('BEGIN EXCLUSIVE')
  } catch (error) {
    lock.close()
    throw taken(error, folder)
  }
  try {
    writeFileSync(holderOf(folder), `${process.pid}\n`, { mode: 0o600 })
  } catch {
    // The lock works without it; what needs the disk reports a full one.
  }
  return {
    close() {
      rmSync(holderOf(folder), { force: true })
      lock.close()
    },
  }
}

/** The process that has the lock, if known and alive. */
function findHolder(folder: string): number | null {
  try {
    const pid = Number(readFileSync(holderOf(folder), 'utf8').trim())
    if (!Number.isSafeInteger(pid) || pid <= 0) return null
    process.kill(pid, 0)
    return pid
  } catch {
    return null
  }
}

/** The error for a data folder that another process serves. */
export function folderTaken(reason: unknown, folder: string): EngineError {
  const pid = findHolder(folder)
  const holder = pid === null ? 'Another process' : `Another process (pid ${pid})`
  const message = `${holder} is serving the data folder ${folder}. Stop it, or name another folder with --data.`
  return new EngineError('unavailable', message, [], reason)
}

/** Throws like `lockFolder` while another process has the folder. Creates no lock. */
export function checkFolderFree(folder: string): void {
  if (existsSync(join(folder, lockFileName))) lockFolder(folder, folderTaken).close()
}
