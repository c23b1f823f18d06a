/** Who has a folder alone: a lock that the operating system ends however the process ends. */
import { Database as BunDatabase } from 'bun:sqlite'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { EngineError } from '../sql/error.ts'

/** The name of the lock in its folder; beside it SQLite may keep files that begin alike. */
export const lockFileName = 'lock.sqlite'

/** Beside the lock: the id of the process that holds it, for the message of the one that does not get it. */
const holderOf = (folder: string): string => join(folder, `${lockFileName}.pid`)

/**
 * An exclusive transaction on a file of its own in a folder that exists. Must be closed. Throws what `taken` makes of
 * the reason while another process has the folder.
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
    // The lock holds without it; a disk that takes no file is reported by what needs one.
  }
  return {
    close() {
      rmSync(holderOf(folder), { force: true })
      lock.close()
    },
  }
}

/** The process that holds a folder, as far as it has said so; what a killed one left behind is not believed. */
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

/** For a data folder that another process serves. */
export function folderTaken(reason: unknown, folder: string): EngineError {
  const pid = findHolder(folder)
  const holder = pid === null ? 'Another process' : `Another process (pid ${pid})`
  const message = `${holder} is serving the data folder ${folder}. Stop it, or name another folder with --data.`
  return new EngineError('unavailable', message, [], reason)
}

/** Throws as `lockFolder` does while another process has the folder. A folder without a lock gets none. */
export function checkFolderFree(folder: string): void {
  if (existsSync(join(folder, lockFileName))) lockFolder(folder, folderTaken).close()
}
