/** The backups that administrators start: into the folder of the settings, where the data is in files. */
import { openBackupRuns } from '../engines/open.ts'
import type { BackupsParts } from '../features/system/backups.ts'
import type { AppContext } from './context.ts'

export async function openBackups({ settings, clock }: AppContext): Promise<BackupsParts['backups']> {
  const { databaseUrl, backupFolder, dataFolder, serviceKey, s3 } = settings
  if (databaseUrl !== null) return 'external'
  if (backupFolder === null) return 'none'
  return openBackupRuns({ folder: backupFolder, dataFolder, serviceKey, bucket: s3?.bucket ?? null, clock })
}
