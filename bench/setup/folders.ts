/** Data folders of a run: private copies, and how large they are. */
import { cpSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'

/**
 * A private copy, on disk before anything is measured: left-over writing would slow the syncs of whoever comes next.
 */
export async function copyFolder(from: string, to: string): Promise<string> {
  rmSync(to, { recursive: true, force: true })
  cpSync(from, to, { recursive: true })
  await Bun.$`sync`.quiet()
  return to
}

/** Of all files in it together. */
export function folderBytes(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((bytes, entry) => bytes + statSync(join(entry.parentPath, entry.name)).size, 0)
}
