/** How a backup keeps the server of its data folder from removing files that it has yet to copy. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { BackupError } from '../engines/backup/archive.ts'
import type { KeptFiles } from '../engines/backup/backup.ts'
import { watchChanges } from '../engines/backup/snapshot.ts'
import { ApiError } from '../errors.ts'
import { storageNamespace } from '../features/storage/schema.ts'
import { backupLeaseRenewMs } from '../limits/jobs.ts'
import type { AdminCall } from './admin-call.ts'

const isOver = (error: unknown): boolean => error instanceof ApiError && error.status === 404
const over = 'The server has ended the lease of the backup, and may have removed files that it needs. Try again.'

/** Takes a lease and renews it until it is released. `ask` is below `/api/backup`; rejects as it does. */
export async function keepByLease(ask: AdminCall): Promise<KeptFiles> {
  const { id } = await ask<{ id: string }>('POST', '/lease')
  const path = `/lease/${id}`
  let isLeased = true
  // A renewal that fails is tried again; `check` finds out whether the lease has lived throughout.
  const timer = setInterval(() => void ask('POST', path).catch(() => {}), backupLeaseRenewMs)
  timer.unref()

  async function end(): Promise<void> {
    clearInterval(timer)
    isLeased = false
    await ask('DELETE', path)
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
 * For a folder that no server has. Should one start later, it may remove files as soon as it has released them, which
 * is a change of its database of files. To be called while nothing writes.
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
