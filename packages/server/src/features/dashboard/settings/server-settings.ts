/**
 * What the configuration and the environment have set: engines, limits, and how long what is stored. Names each value
 * that it shows, so that no secret is among them: no URL with credentials, no key, no variable.
 */
import { basename } from 'node:path'
import { parseDatabaseUrl } from '../../../base/network/database-url.ts'
import { z } from '../../../base/schemas/z.ts'
import type { Config, Settings } from '../../../config/config.ts'
import type { MailRoute } from '../../../engines/mail/mail.ts'
import { rawRetentionMs } from '../../../limits/analytics.ts'
import { idempotencyRetentionMs } from '../../../limits/api.ts'
import { auditEntriesMax, recentRequestsMax } from '../../../limits/dashboard.ts'
import { functionJobsFinishedKeptMs, functionJobsFinishedMax } from '../../../limits/function-jobs.ts'
import { recentLogBytesMax } from '../../../limits/jobs.ts'
import { pushLogRetentionMs } from '../../../limits/push.ts'

const engine = z.object({
  kind: z.string(),
  location: z.string().nullable().meta({ description: 'Where it is, without credentials' }),
})

const retention = z.object({
  id: z.string(),
  retentionMs: z.int().nullable(),
  bytesMax: z.int().nullable(),
  itemsMax: z.int().nullable(),
  per: z.enum(['server', 'database', 'node']).meta({ description: 'What the bounds count for' }),
  option: z.string().nullable().meta({ description: 'The option of the configuration that changes it' }),
})

export const serverSettingsSchema = z.object({
  project: z.string().nullable().meta({ description: 'The folder of the configuration, without its path' }),
  appName: z.string().nullable(),
  mode: z.enum(['development', 'release']),
  version: z.string(),
  runtime: z.string(),
  publicUrl: z.string().nullable(),
  listensOn: z.string(),
  trustedProxy: z.string(),
  logLevel: z.string(),
  engines: z.object({ sql: engine, blobs: engine, cluster: engine, mail: engine }),
  dashboard: z.object({ requiresMfa: z.boolean(), roles: z.array(z.string()) }),
  corsOrigins: z.array(z.string()),
  limits: z.object({
    responseBytes: z.int(),
    writeBytes: z.int(),
    sessionsPerUser: z.int(),
    passwordCharsMin: z.int(),
    functionHosts: z.int(),
    functionMemoryBytes: z.int(),
    rateLimits: z.array(z.object({ group: z.string(), requests: z.int(), windowMs: z.int() })),
  }),
  retention: z.array(retention),
})

export type ServerSettings = z.output<typeof serverSettingsSchema>
type Engines = ServerSettings['engines']
type Retention = ServerSettings['retention'][number]

export interface DescribedServer {
  readonly config: Config
  readonly settings: Settings
  readonly mailRoute: MailRoute
  readonly version: string
}

function describeEngines({ config, settings, mailRoute }: Omit<DescribedServer, 'version'>): Engines {
  const { dataFolder, databaseUrl, redisUrl, s3 } = settings
  const smtp = config.auth.mail?.smtp
  const { hosts, database } = databaseUrl === null ? { hosts: [], database: '' } : parseDatabaseUrl(databaseUrl)
  return {
    sql:
      databaseUrl === null
        ? { kind: 'SQLite', location: dataFolder }
        : { kind: 'PostgreSQL', location: `${hosts.map(({ name }) => name).join(', ')}, database ${database}` },
    blobs: s3 ? { kind: 'S3', location: `${new URL(s3.endpoint).host}, bucket ${s3.bucket}` } : folderOf(dataFolder),
    cluster:
      redisUrl === null ? { kind: 'One process', location: null } : { kind: 'Redis', location: new URL(redisUrl).host },
    mail:
      mailRoute === 'smtp'
        ? { kind: 'SMTP', location: smtp ? `${smtp.host}:${smtp.port}` : null }
        : { kind: mailRoute === 'outbox' ? 'Outbox' : 'None', location: null },
  }
}

const folderOf = (location: string) => ({ kind: 'Files', location })

const bound = (id: string, per: Retention['per'], option: string | null, bounds: Partial<Retention>): Retention => ({
  id,
  retentionMs: null,
  bytesMax: null,
  itemsMax: null,
  per,
  option,
  ...bounds,
})

const describeRetention = ({ changes, analytics }: Config): readonly Retention[] => [
  bound('changes', 'database', 'changes', changes),
  bound('audit', 'server', null, { itemsMax: auditEntriesMax }),
  bound('requestLog', 'server', 'analytics.requestLog', analytics.requestLog ? analytics.requestRows : { itemsMax: 0 }),
  bound('events', 'server', 'analytics.rawEvents', {
    retentionMs: rawRetentionMs,
    bytesMax: analytics.rawEvents.bytesMax,
  }),
  bound('jobs', 'server', null, { retentionMs: functionJobsFinishedKeptMs, itemsMax: functionJobsFinishedMax }),
  bound('pushLog', 'server', null, { retentionMs: pushLogRetentionMs }),
  bound('idempotency', 'database', null, { retentionMs: idempotencyRetentionMs }),
  bound('requests', 'node', null, { itemsMax: recentRequestsMax }),
  bound('logs', 'node', null, { bytesMax: recentLogBytesMax }),
]

export function describeServer({ config, settings, mailRoute, version }: DescribedServer): ServerSettings {
  const { mode, auth, limits, functions, rateLimits, cors, dashboard } = config
  const { projectFolder, publicUrl, host, port, trustProxy, logLevel } = settings
  return {
    project: projectFolder === null ? null : basename(projectFolder),
    appName: auth.mail?.appName ?? null,
    mode,
    version,
    runtime: `Bun ${process.versions.bun}`,
    publicUrl,
    listensOn: `${host.includes(':') ? `[${host}]` : host}:${port}`,
    trustedProxy: trustProxy.kind,
    logLevel,
    engines: describeEngines({ config, settings, mailRoute }),
    dashboard: { requiresMfa: dashboard?.requiresMfa ?? false, roles: [...(dashboard?.roles.keys() ?? [])] },
    corsOrigins: [...cors.origins],
    limits: {
      responseBytes: limits.responseBytes,
      writeBytes: limits.writeBytes,
      sessionsPerUser: auth.sessionsPerUserMax,
      passwordCharsMin: auth.passwordCharsMin,
      functionHosts: functions.hosts,
      functionMemoryBytes: functions.memoryBytes,
      rateLimits: Object.entries(rateLimits).map(([group, { requests, windowMs }]) => ({ group, requests, windowMs })),
    },
    retention: [...describeRetention(config)],
  }
}
