/** Data folders of a run: private copies and their sizes. */
import { cpSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Copies a folder and syncs it to disk before anything is measured: pending writes would slow the following syncs.
 */
export async function copyFolder(from: string, to: string): Promise<string> {
  rmSync(to, { recursive: true, force: true })
  cpSync(from, to, { recursive: true })
  await Bun.$`sync`.quiet()
  return to
}

/** Total size of all files. */
export function folderBytes(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((bytes, entry) => bytes + statSync(join(entry.parentPath, entry.name)).size, 0)
}
