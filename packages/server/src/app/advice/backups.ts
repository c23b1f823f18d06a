/** Advice on backups: whether there are any, how old the newest is, and whether one is known to be good. */
import type { BackupFile } from '../../engines/backup/backup-runs.ts'
import type { Advice } from '../../features/system/advice.ts'
import { manifestOf } from '../../features/system/backups.ts'
import { adviceBackupAgeMs, adviceBackupsListed, adviceVerifiedAgeMs } from '../../limits/dashboard.ts'
import { formatDays } from './days.ts'
import type { AdviceSources } from './sources.ts'

export async function adviseOnBackups({ backups, context }: AdviceSources): Promise<readonly Advice[]> {
  if (backups === 'external' || context.config.mode === 'development') return []
  if (backups === 'none')
    return [
      {
        ...base,
        id: 'backup-folder',
        severity: 'medium',
        title: 'The server knows of no backups',
        why: 'Without PLINTH_BACKUP_FOLDER the dashboard cannot start backups nor check their age.',
        fix: 'Set the folder, on another disk than the data.',
        code: 'PLINTH_BACKUP_FOLDER=/backups',
      },
    ]
  const { latest } = backups
  if (latest?.state === 'failed')
    return [
      {
        ...base,
        id: 'backup-failed',
        severity: 'high',
        title: 'The latest backup failed',
        why: latest.message ?? 'It ended without a message.',
        fix: 'Remove the cause, then start one again.',
        code: 'npx plinth backup',
      },
    ]
  const listed = await backups.list(null, adviceBackupsListed)
  const nowMs = context.clock.now()
  return [...adviseOnAge(listed[0], nowMs), ...adviseOnVerification(listed, nowMs)]
}

const base = { where: 'backups', link: '/backups' }

function adviseOnAge(newest: BackupFile | undefined, nowMs: number): readonly Advice[] {
  const createdAtMs = Date.parse((newest && manifestOf(newest)?.createdAt) ?? '')
  const ageMs = Number.isNaN(createdAtMs) ? Number.POSITIVE_INFINITY : nowMs - createdAtMs
  if (ageMs <= adviceBackupAgeMs) return []
  return [
    {
      ...base,
      id: 'backup-age',
      severity: 'high',
      title: Number.isFinite(ageMs) ? `The newest backup is ${formatDays(ageMs)} old` : 'There is no backup',
      why: 'What was written since cannot be restored.',
      fix: 'Start one now, and schedule the command.',
      code: '0 3 * * * npx plinth backup',
    },
  ]
}

/** A damaged backup is severe; that none was verified lately is a thing to do. */
function adviseOnVerification(listed: readonly BackupFile[], nowMs: number): readonly Advice[] {
  const [newest] = listed
  if (!newest) return []
  const problem = newest.verification?.problems[0]
  if (problem !== undefined)
    return [
      {
        ...base,
        id: 'backup-damaged',
        severity: 'high',
        title: 'The newest backup cannot be restored',
        where: newest.name,
        why: `Its verification has found: ${problem}`,
        fix: 'Make another one and verify it. Check the disk that holds them.',
        code: 'npx plinth backup',
      },
    ]
  const verified = listed.flatMap(({ verification }) =>
    verification && verification.problems.length === 0 ? [verification.verifiedAtMs] : [],
  )
  const ageMs = nowMs - Math.max(...verified)
  if (ageMs <= adviceVerifiedAgeMs) return []
  return [
    {
      ...base,
      id: 'backup-unverified',
      severity: 'medium',
      title: Number.isFinite(ageMs) ? `No backup was verified for ${formatDays(ageMs)}` : 'No backup was verified',
      why: 'Only a backup that was restored once is known to be good.',
      fix: 'Verify the newest one; it is restored into a temporary folder. Schedule it after the backup.',
      code: `npx plinth verify ${newest.name}`,
    },
  ]
}
