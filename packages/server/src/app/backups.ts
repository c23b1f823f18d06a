/** The backups that administrators start: into the folder of the settings, where the data is in files. */
import { openBackupRuns } from '../engines/open.ts'
import type { BackupsParts } from '../features/system/backups.ts'
import type { AppContext } from './context.ts'

export function openBackups({ settings, clock }: AppContext): BackupsParts['backups'] {
  const { databaseUrl, backupFolder, dataFolder, serviceKey } = settings
  if (databaseUrl !== null) return 'external'
  return backupFolder === null ? 'none' : openBackupRuns({ folder: backupFolder, dataFolder, serviceKey, clock })
}
