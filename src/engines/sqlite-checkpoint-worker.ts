/**
 * Runs in a thread of its own: folds a database's write-ahead log back into its file, so that the disk syncs this takes
 * block nobody.
 */
import { Database } from 'bun:sqlite'
import { parentPort } from 'node:worker_threads'

function fold(path: string): string | null {
  try {
    const db = new Database(path, { readwrite: true, create: false })
    try {
      // Passive: never waits for, or blocks, a reader or the writer.
      db.run('PRAGMA wal_checkpoint(PASSIVE)')
      return null
    } finally {
      db.close()
    }
  } catch (error) {
    return String(error)
  }
}

parentPort?.on('message', ({ id, path }: { id: number; path: string }) => {
  parentPort?.postMessage({ id, error: fold(path) })
})
