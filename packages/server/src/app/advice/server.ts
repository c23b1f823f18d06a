/** Advice on the machines of the server and on its settings. */
import { statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Advice } from '../../features/system/advice.ts'
import { adviceClockSkewMs, adviceDiskBytesMin, adviceDiskShareMin } from '../../limits/dashboard.ts'
import type { DiskSpace } from '../substitutes.ts'
import type { AdviceSources } from './sources.ts'

/** The answer of another node takes up to half a second, which is less than what is reported. */
export async function adviseOnClocks({ nodes, context: { clock } }: AdviceSources): Promise<readonly Advice[]> {
  const [, ...others] = await nodes.status.query(null)
  return others.flatMap(({ host, id, at }) => {
    const skewMs = Date.parse(at) - clock.now()
    if (Math.abs(skewMs) < adviceClockSkewMs) return []
    return [
      {
        id: `clock:${host}`,
        severity: 'high' as const,
        title: `The clock of a node is ${Math.round(Math.abs(skewMs) / 1000)} s ${skewMs > 0 ? 'ahead' : 'behind'}`,
        where: `node ${host} ${id.slice(0, 8)}`,
        why: 'Expiry of tokens, leases and times of records depend on clocks that agree.',
        fix: 'Synchronize the clocks of all nodes.',
        code: 'timedatectl set-ntp true',
        link: '/live?tab=connections',
      },
    ]
  })
}

/** Of the disk with a folder, or with the one above it. */
async function readDiskSpace(folder: string): Promise<DiskSpace> {
  const { bsize, blocks, bavail } = await statfs(folder).catch(() => statfs(dirname(folder)))
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize }
}

export async function adviseOnDisk({ context: { settings, substitutes } }: AdviceSources): Promise<readonly Advice[]> {
  const read = substitutes.readDiskSpace ?? readDiskSpace
  const { freeBytes: free, totalBytes: total } = await read(settings.dataFolder)
  if (free >= adviceDiskBytesMin && free >= total * adviceDiskShareMin) return []
  const isUrgent = free < adviceDiskBytesMin
  return [
    {
      id: 'disk',
      severity: isUrgent ? 'high' : 'medium',
      title: `${(free / 1e9).toFixed(1)} GB of disk space are left`,
      where: 'data folder',
      why: `That is ${Math.round((free / total) * 100)} % of the disk. Writes are refused when it is full.`,
      fix: 'Free space or enlarge the disk.',
      code: null,
      link: null,
    },
  ]
}

/** Settings that a server in use should have. */
export function adviseOnSettings({ context: { config, settings } }: AdviceSources): readonly Advice[] {
  if (config.mode === 'development') return []
  const base = { severity: 'medium', where: 'settings', link: null } as const
  const advice: Advice[] = []
  if (settings.publicUrl === null)
    advice.push({
      ...base,
      id: 'public-url',
      title: 'The server does not know its public address',
      why: 'Links in mails and signed URLs begin with it.',
      fix: 'Set PLINTH_PUBLIC_URL.',
      code: 'PLINTH_PUBLIC_URL=https://api.example.com',
    })
  if (!config.auth.mail?.smtp)
    advice.push({
      ...base,
      id: 'mail',
      title: 'No mail server is configured',
      why: 'Users can neither verify their address nor reset a password.',
      fix: 'Configure a mail server in auth.mail.smtp.',
      code: "auth: { mail: { from: 'App <app@example.com>', smtp: 'smtps://user:password@smtp.example.com' } },",
    })
  if (config.dashboard?.requiresMfa === false)
    advice.push({
      ...base,
      id: 'second-factor',
      title: 'Administrators need no second factor',
      why: 'A stolen password opens the dashboard.',
      fix: 'Remove dashboard.requireMfa from the configuration.',
      code: null,
    })
  return advice
}
