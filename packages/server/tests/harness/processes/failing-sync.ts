/**
 * Loaded into a server before it starts: while the working folder holds a file `sync-fails`, every sync of a database's
 * log fails as a disk that has lost a write does.
 */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'

const fs = createRequire(import.meta.url)('node:fs') as { fdatasync: typeof import('node:fs').fdatasync }
const { fdatasync } = fs

fs.fdatasync = ((file: number, done: (error: NodeJS.ErrnoException | null) => void) => {
  if (!existsSync('sync-fails')) return fdatasync(file, done)
  const error: NodeJS.ErrnoException = new Error('EIO: i/o error, fdatasync')
  error.code = 'EIO'
  setImmediate(done, error)
}) as typeof fdatasync
