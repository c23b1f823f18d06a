/** Prevents the server of a data folder from removing files that a backup has yet to copy. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { BackupError } from '../engines/backup/archive.ts'
import type { KeptFiles } from '../engines/backup/backup.ts'
import { watchChanges } from '../engines/backup/snapshot.ts'
import { ApiError } from '../errors.ts'
import { storageNamespace } from '../features/storage/migrations.ts'
import { backupLeaseRenewMs } from '../limits/jobs.ts'
import type { AdminCall } from './admin-call.ts'

const isOver = (error: unknown): boolean => error instanceof ApiError && error.status === 404
const over = 'The lease of the backup has expired, and the server may have removed files that it needs. Try again.'

/** Acquires a lease and renews it until it is released. `call` is relative to `/api/backup`; rejects as it does. */
export async function keepByLease(call: AdminCall): Promise<KeptFiles> {
  const { id } = await call<{ id: string }>('POST', '/lease')
  const path = `/lease/${id}`
  let isLeased = true
  // A failed renewal is retried; `check` finds out whether the lease was held throughout.
  const timer = setInterval(() => void call('POST', path).catch(() => {}), backupLeaseRenewMs)
  timer.unref()

  async function end(): Promise<void> {
    clearInterval(timer)
    isLeased = false
    await call('DELETE', path)
  }

  return {
    async check() {
      try {
        await end()
      } catch (error) {
        if (isOver(error)) throw new BackupError(over)
        throw error
      }
    },
    async release() {
      if (isLeased) await end().catch(() => {})
    },
  }
}

/**
 * For a folder without a running server. A server that starts later may remove files once it has released them in its
 * file database, so a change of that database fails the backup. Call while nothing writes.
 */
export function keepWithoutServer(dataFolder: string): KeptFiles {
  const path = join(dataFolder, 'databases', `${storageNamespace}.sqlite`)
  const changes = existsSync(path) ? watchChanges(path) : null
  return {
    async check() {
      if (changes?.hasChanged())
        throw new BackupError(
          'A server began to serve the data folder during the backup and may have removed files that it needs. Try again.',
        )
    },
    async release() {
      changes?.close()
    },
  }
}
