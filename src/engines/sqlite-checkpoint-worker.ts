/**
 * Runs in a thread of its own: brings a database's write-ahead log into its file, so that the disk syncs this takes
 * block no request.
 */
import { Database } from 'bun:sqlite'
import { parentPort } from 'node:worker_threads'
import type { CheckpointMode } from './sqlite-checkpoint.ts'

interface Request {
  readonly id: number
  readonly path: string
  readonly mode: CheckpointMode
}

function checkpoint({ path, mode }: Request): string | null {
  try {
    const db = new Database(path, { readwrite: true, create: false })
    try {
      // Without a busy timeout neither mode waits for a reader or the writer.
      db.run(`PRAGMA wal_checkpoint(${mode === 'truncate' ? 'TRUNCATE' : 'PASSIVE'})`)
      return null
    } finally {
      db.close()
    }
  } catch (error) {
    return String(error)
  }
}

parentPort?.on('message', (request: Request) => {
  parentPort?.postMessage({ id: request.id, error: checkpoint(request) })
})
