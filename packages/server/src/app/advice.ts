/** Gathers what an operator should look at from all parts of the server. Each check is bounded. */
import { statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Dashboard } from '../features/dashboard/index.ts'
import type { Records } from '../features/records/index.ts'
import type { MatrixTable } from '../features/records/rules/matrix/matrix.ts'
import type { Advice } from '../features/system/advice.ts'
import { type BackupsParts, manifestOf } from '../features/system/backups.ts'
import {
  adviceBackupAgeMs,
  adviceClockSkewMs,
  adviceDiskBytesMin,
  adviceDiskShareMin,
  adviceKeyExpiryMs,
} from '../limits/dashboard.ts'
import type { AppContext } from './context.ts'
import type { Nodes } from './node-status.ts'

export interface AdviceSources {
  readonly context: AppContext
  readonly records: Pick<Records, 'matrix' | 'missingIndexes' | 'redundantIndexes'>
  readonly dashboard: Pick<Dashboard, 'slowSpans'>
  readonly nodes: Nodes
  readonly backups: BackupsParts['backups']
}

const quoted = (fields: readonly string[]): string => fields.map((field) => `'${field}'`).join(', ')
const list = (names: readonly string[]): string => names.join(', ')

/** A check that fails is logged, and does not hide what the others found. */
export const createAdvise = (sources: AdviceSources) => async (): Promise<readonly Advice[]> => {
  const checks: readonly ((of: AdviceSources) => readonly Advice[] | Promise<readonly Advice[]>)[] = [
    adviseOnRules,
    adviseOnIndexes,
    adviseOnSpans,
    adviseOnKeys,
    adviseOnBackups,
    adviseOnClocks,
    adviseOnDisk,
    adviseOnSettings,
  ]
  const found = await Promise.all(
    checks.map(async (check) => {
      try {
        return await check(sources)
      } catch (error) {
        sources.context.log.warn('system.advice_failed', { check: check.name, error })
        return []
      }
    }),
  )
  return found.flat()
}

const writes = ['create', 'update', 'delete'] as const

const nameOf = ({ kind, namespace, name }: MatrixTable): string =>
  kind === 'bucket' ? `bucket ${name}` : `${namespace}.${name}`

async function adviseOnRules({ records }: AdviceSources): Promise<readonly Advice[]> {
  return (await records.matrix()).flatMap((table) => {
    const where = nameOf(table)
    const open = writes.filter((operation) => table.operations[operation].anonymous.access === 'always')
    const link = `/rules/matrix?search=${encodeURIComponent(table.name)}`
    const advice: Advice[] = []
    if (open.length > 0)
      advice.push({
        id: `open-write:${where}`,
        severity: 'high',
        title: `Anyone can ${list(open)} records`,
        where,
        why: 'The rule is true for callers without credentials, so that a script can fill, change or empty it.',
        fix: 'Require a signed-in caller, and bind records to their author.',
        code: open
          .map(
            (operation) => `${operation === 'create' ? 'insert' : operation}: (auth) => auth && { userId: auth.id },`,
          )
          .join('\n'),
        link,
      })
    else if (table.operations.read.anonymous.access === 'always')
      advice.push({
        id: `open-read:${where}`,
        severity: 'low',
        title: 'Anyone can read all records',
        where,
        why: 'The rule for reading is true for callers without credentials. That is right for public data only.',
        fix: 'If it is not public, require a signed-in caller or a condition.',
        code: 'read: (auth) => auth !== null,',
        link,
      })
    const kinds = Object.values(table.operations).flatMap((cells) => Object.values(cells))
    if (table.failures.length === 0 && kinds.every(({ access }) => access === 'never'))
      advice.push({
        id: `no-rules:${where}`,
        severity: 'low',
        title: 'No rule permits anything',
        where,
        why: 'Only service keys and functions reach its records. That is right for internal data only.',
        fix: 'If users should reach them, give the table rules.',
        code: 'access: {\n  read: (auth) => auth && { userId: auth.id },\n},',
        link,
      })
    for (const failure of table.failures.slice(0, 1))
      advice.push({
        id: `failing-rule:${where}`,
        severity: 'medium',
        title: 'A rule fails for a sample caller',
        where,
        why: `A rule that throws denies: ${failure}`,
        fix: 'Read claims that a caller may lack with ?. and a default.',
        code: null,
        link,
      })
    return advice
  })
}

async function adviseOnIndexes({ records }: AdviceSources): Promise<readonly Advice[]> {
  const missing = (await records.missingIndexes()).map(
    ({ namespace, table, fields, count, sorts }): Advice => ({
      id: `missing-index:${namespace}.${table}:${fields.join(',')}`,
      severity: 'medium',
      title: `Lists would use an index on ${list(fields)}`,
      where: `${namespace}.${table}`,
      why: `${count} sampled ${count === 1 ? 'list' : 'lists'} ${sorts ? 'sorted' : 'read'} all rows of the table, which takes longer with each row.`,
      fix: 'Add the index to the table; it is built when the configuration is loaded.',
      code: `indexes: [{ fields: [${quoted(fields)}] }],`,
      link: `/data/${encodeURIComponent(namespace)}/${encodeURIComponent(table)}?tab=schema`,
    }),
  )
  const redundant = records.redundantIndexes().map(
    ({ namespace, table, fields, coveredBy }): Advice => ({
      id: `redundant-index:${namespace}.${table}:${fields.join(',')}`,
      severity: 'low',
      title: `The index on ${list(fields)} is not needed`,
      where: `${namespace}.${table}`,
      why: `The index on ${list(coveredBy)} begins with the same fields and serves the same lists. Each write updates both.`,
      fix: 'Remove the shorter one from the table.',
      code: `// remove: { fields: [${quoted(fields)}] }`,
      link: `/data/${encodeURIComponent(namespace)}/${encodeURIComponent(table)}?tab=schema`,
    }),
  )
  return [...missing, ...redundant]
}

const adviseOnSpans = ({ dashboard }: AdviceSources): readonly Advice[] =>
  dashboard.slowSpans().map(({ kind, label, endpoint, count, averageMs, requestId }) => ({
    id: `slow-${kind}:${label.slice(0, 200)}`,
    severity: 'medium',
    title: kind === 'statement' ? 'A statement is slow' : `The function ${label} is slow`,
    where: endpoint,
    why: `On average ${Math.round(averageMs)} ms in ${count} traced ${count === 1 ? 'request' : 'requests'} of the last 2,000.`,
    fix:
      kind === 'statement'
        ? 'Open a request that ran it. A list is explained with its plan by explain=1 or in the rules playground.'
        : 'Open a request that called it. Move what the response does not need into a job.',
    code: kind === 'statement' ? label : null,
    link: `/insights/requests/${encodeURIComponent(requestId)}`,
  }))

const day = 24 * 60 * 60 * 1000
const inDays = (ms: number): string => (ms < day ? 'within a day' : `in ${Math.floor(ms / day)} days`)

function adviseOnKeys({ context: { config, clock } }: AdviceSources): readonly Advice[] {
  return config.serviceKeys.flatMap(({ name, expiresAtMs }): readonly Advice[] => {
    if (expiresAtMs === undefined) return []
    const leftMs = expiresAtMs - clock.now()
    if (leftMs > adviceKeyExpiryMs) return []
    const isExpired = leftMs <= 0
    return [
      {
        id: `key-expiry:${name}`,
        severity: isExpired ? 'low' : 'high',
        title: isExpired ? 'A service key has expired' : `A service key expires ${inDays(leftMs)}`,
        where: `service key ${name}`,
        why: isExpired ? 'It is refused.' : 'Requests with it are refused from then on.',
        fix: isExpired
          ? 'Remove it from serviceKeys in the configuration.'
          : 'Add a new key beside it, change the programs that use it, then remove it.',
        code: null,
        link: null,
      },
    ]
  })
}

async function adviseOnBackups({ backups, context }: AdviceSources): Promise<readonly Advice[]> {
  if (backups === 'external' || context.config.mode === 'development') return []
  const base = { where: 'backups', link: '/backups' }
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
  const [newest] = await backups.list(null, 1)
  const createdAtMs = Date.parse((newest && manifestOf(newest)?.createdAt) ?? '')
  const ageMs = Number.isNaN(createdAtMs) ? Number.POSITIVE_INFINITY : context.clock.now() - createdAtMs
  if (ageMs <= adviceBackupAgeMs) return []
  return [
    {
      ...base,
      id: 'backup-age',
      severity: 'high',
      title: newest ? `The newest backup is ${Math.floor(ageMs / day)} days old` : 'There is no backup',
      why: 'What was written since cannot be restored.',
      fix: 'Start one now, and schedule the command.',
      code: '0 3 * * * npx plinth backup',
    },
  ]
}

/** The answer of another node takes up to half a second, which is less than what is reported. */
async function adviseOnClocks({ nodes, context: { clock } }: AdviceSources): Promise<readonly Advice[]> {
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

async function adviseOnDisk({ context: { settings } }: AdviceSources): Promise<readonly Advice[]> {
  const { bsize, blocks, bavail } = await statfs(settings.dataFolder).catch(() => statfs(dirname(settings.dataFolder)))
  const [free, total] = [bavail * bsize, blocks * bsize]
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
function adviseOnSettings({ context: { config, settings } }: AdviceSources): readonly Advice[] {
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
