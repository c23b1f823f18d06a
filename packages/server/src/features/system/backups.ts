/** Endpoints of backups for administrators: lists, starts and verifies the backups in the folder of the operator. */
import { z } from '../../base/schemas/z.ts'
import { formatDatetime } from '../../base/text/datetime.ts'
import type { BackupFile, BackupRuns } from '../../engines/backup/backup-runs.ts'
import { conflict, notFound } from '../../errors.ts'
import { type Endpoint, endpoint } from '../../http/endpoint.ts'
import { cursorParam, limitParam } from '../../http/input/query-schema.ts'
import { createListCursors } from '../../http/replies/list-cursor.ts'
import { json } from '../../http/replies/reply.ts'
import { backupsListed, backupsListedMax } from '../../limits/jobs.ts'

export interface BackupsParts {
  /** `none`: no folder is set. `external`: the data is in PostgreSQL, whose tools back it up. */
  readonly backups: BackupRuns | 'none' | 'external'
  /** Seals cursors. */
  readonly secret: string
}

const itemSchema = z.object({
  name: z.string(),
  bytes: z.int(),
  createdAt: z.string().nullable().meta({ description: 'Null for a file that is no backup' }),
  version: z.string().nullable().meta({ description: 'Of the program that made it' }),
  hasSecrets: z.boolean().meta({ description: 'Whether it contains the secrets, under a passphrase' }),
  verification: z
    .object({
      at: z.iso.datetime(),
      isIntact: z.boolean(),
      problems: z.array(z.string()).meta({ description: 'The first of them' }),
    })
    .nullable()
    .meta({ description: 'The latest verification; null if it was not verified' }),
})

const runSchema = z.object({
  kind: z.enum(['backup', 'verification']),
  state: z.enum(['running', 'done', 'failed']),
  startedAt: z.iso.datetime(),
  endedAt: z.iso.datetime().nullable(),
  message: z.string().nullable().meta({ description: 'Output of the command' }),
})

const listSchema = z.object({
  state: z.enum(['ready', 'none', 'external']).meta({
    description: '`none` without `PLINTH_BACKUP_FOLDER`; `external` where the data is in PostgreSQL',
  }),
  items: z.array(itemSchema),
  cursor: z.string().nullable(),
  latestRun: runSchema
    .nullable()
    .meta({ description: 'The latest backup or verification that this process has started' }),
  bytesWritten: z.int().nullable().meta({ description: 'Of a backup that is being written; null without one' }),
})

const isRunning = 'A backup or a verification is running'

const headSchema = z.object({ version: z.string(), createdAt: z.string(), secrets: z.string().nullable() })

/** What `backup.json` says; null for a file that is no backup. */
export const manifestOf = ({ head }: Pick<BackupFile, 'head'>): z.output<typeof headSchema> | null =>
  headSchema.safeParse(findJson(head)).data ?? null

function format(file: BackupFile): z.output<typeof itemSchema> {
  const { name, bytes, verification } = file
  const data = manifestOf(file)
  return {
    name,
    bytes,
    createdAt: data?.createdAt ?? null,
    version: data?.version ?? null,
    hasSecrets: typeof data?.secrets === 'string',
    verification: verification && {
      at: formatDatetime(verification.verifiedAtMs),
      isIntact: verification.problems.length === 0,
      problems: [...verification.problems],
    },
  }
}

function findJson(text: string | null): unknown {
  try {
    return text === null ? null : JSON.parse(text)
  } catch {
    return null
  }
}

function formatRun({ latest }: BackupRuns): z.output<typeof runSchema> | null {
  if (!latest) return null
  const { kind, state, startedAtMs, endedAtMs, message } = latest
  return {
    kind,
    state,
    startedAt: formatDatetime(startedAtMs),
    endedAt: endedAtMs === null ? null : formatDatetime(endedAtMs),
    message,
  }
}

export function createBackupsEndpoints({ backups, secret }: BackupsParts): readonly Endpoint[] {
  const cursors = createListCursors<[name: string]>(secret, 'system backups')
  const shared = { tag: 'System', credentials: 'service', rateLimit: 'global', isSecret: true } as const
  return [
    endpoint({
      ...shared,
      name: 'system.listBackups',
      method: 'GET',
      paths: ['/api/backups'],
      summary: 'List the backups in the folder of the operator, the newest first',
      scope: () => 'system:backup:*:read',
      query: z.object({ limit: limitParam({ default: backupsListed, max: backupsListedMax }), cursor: cursorParam() }),
      replies: { 200: { description: '`cursor` is null on the last page', schema: listSchema } },
      async handle({ query: { limit, cursor } }) {
        const [before] = cursor === undefined ? [null] : cursors.parse([], cursor)
        if (typeof backups === 'string')
          return json({ state: backups, items: [], cursor: null, latestRun: null, bytesWritten: null })
        const found = await backups.list(before, limit + 1)
        const items = found.slice(0, limit).map(format)
        const last = found.length > limit ? items.at(-1) : undefined
        return json({
          state: 'ready',
          items,
          cursor: last ? cursors.format([], [last.name]) : null,
          latestRun: formatRun(backups),
          bytesWritten: await backups.bytesWritten(),
        })
      },
    }),
    endpoint({
      ...shared,
      name: 'system.startBackup',
      method: 'POST',
      paths: ['/api/backups'],
      summary: 'Start a backup into the folder of the operator',
      description:
        'Runs `plinth backup` in a process of its own; `GET /api/backups` shows its progress and result. The archive has a name with the time, and no secrets. 409 while one runs; 404 without `PLINTH_BACKUP_FOLDER`, and with PostgreSQL.',
      scope: () => 'system:backup:*:write',
      replies: { 202: { description: 'The backup that runs', schema: runSchema } },
      errors: [404, 409],
      handle() {
        // `GET` says which of the two it is.
        if (typeof backups === 'string') throw notFound('Folder of backups')
        if (!backups.start()) throw conflict(isRunning)
        return json(formatRun(backups), 202)
      },
    }),
    endpoint({
      ...shared,
      name: 'system.verifyBackup',
      method: 'POST',
      paths: ['/api/backups/:name/verify'],
      summary: 'Verify a backup by restoring it into a temporary folder',
      description:
        'Runs `plinth verify` in a process of its own; `GET /api/backups` shows its progress and result. Needs as much free space in the folder as the data. 409 while a backup or a verification runs; 404 for a name that `GET /api/backups` does not list.',
      scope: () => 'system:backup:*:write',
      replies: { 202: { description: 'The verification that runs', schema: runSchema } },
      errors: [404, 409],
      async handle({ params }) {
        const isStarted = typeof backups === 'string' ? null : await backups.verify(params.name ?? '')
        if (typeof backups === 'string' || isStarted === null) throw notFound('Backup')
        if (!isStarted) throw conflict(isRunning)
        return json(formatRun(backups), 202)
      },
    }),
  ]
}
