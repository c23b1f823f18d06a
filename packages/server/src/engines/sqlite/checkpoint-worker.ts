/** Worker thread that checkpoints write-ahead logs, so that the disk syncs of a checkpoint block no request. */
import { Database } from 'bun:sqlite'
import { parentPort } from 'node:worker_threads'
import { isOutOfHandles } from '../../base/files/file-handles.ts'
import { readIndexedFrames, readLogFrames } from '../disk/wal-file.ts'
import type { CheckpointFailure, CheckpointMode } from './checkpoint.ts'

interface Request {
  readonly id: number
  readonly path: string
  readonly mode: CheckpointMode
}

function checkpoint({ path, mode }: Request): CheckpointFailure | null {
  try {
    if (mode === 'recover') checkFrames(path)
    const db = new Database(path, { readwrite: true, create: false })
    try {
      // A new connection syncs the log before and the file after a checkpoint. Without a busy timeout, no mode waits
      // for a reader or the writer.
      const query = `PRAGMA wal_checkpoint(${mode === 'passive' ? 'PASSIVE' : 'TRUNCATE'})`
      const done = db.query<{ busy: number }, []>(query).get()
      return done?.busy ? { message: 'The log is in use', isOutOfHandles: false } : null
    } finally {
      db.close()
    }
  } catch (error) {
    return { message: String(error), isOutOfHandles: isOutOfHandles(error) }
  }
}

/** A frame that the disk has lost must not reach the file. */
function checkFrames(path: string): void {
  const { intact } = readLogFrames(path)
  const indexed = readIndexedFrames(path)
  if (intact < indexed)
    throw new Error(
      `The log has lost ${indexed - intact} of ${indexed} frames; restart the server to read what is left`,
    )
}

parentPort?.on('message', (request: Request) => {
  parentPort?.postMessage({ id: request.id, error: checkpoint(request) })
})
