/** The databases of a served data folder in a folder of their own, as they are now, for commands that only look. */
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { databasesIn } from '../disk/known-databases.ts'
import { openSnapshot } from './snapshot.ts'

/**
 * Calls `look` with a folder that holds copies of the databases of static namespaces, and removes it. Needs as much
 * room beside the data as they take.
 */
export async function withOfflineCopy<T>(folder: string, look: (copy: string) => Promise<T>): Promise<T> {
  // Hidden names are left out of backups.
  const copy = mkdtempSync(join(folder, '.look-'))
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
    return await look(copy)
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}
