/** Copies of the databases of a served data folder, for read-only commands. */
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { databasesIn } from '../disk/known-databases.ts'
import { openSnapshot } from './snapshot.ts'

/**
 * Calls `use` with a folder of copies of the static namespaces' databases, and removes it afterwards. Needs as much
 * disk space as the databases.
 */
export async function withOfflineCopy<T>(folder: string, use: (copy: string) => Promise<T>): Promise<T> {
  // Backups omit hidden names.
  const copy = mkdtempSync(join(folder, '.copy-'))
  try {
    const source = join(folder, 'databases')
    mkdirSync(join(copy, 'databases'))
    for (const name of existsSync(source) ? databasesIn(source) : []) {
      const snapshot = openSnapshot(join(source, `${name}.sqlite`))
      try {
        await snapshot.copyTo(join(copy, 'databases', `${name}.sqlite`))
      } finally {
        snapshot.close()
      }
    }
    return await use(copy)
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}
