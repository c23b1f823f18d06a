/**
 * The moment of a backup: writes wait while the command that makes the backup opens the databases. Given back when it
 * says so, and by itself soon after, so that a command that dies delays writes and no more.
 */
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { conflict, notFound } from '../../errors.ts'
import { type Endpoint, endpoint } from '../../http/endpoint.ts'
import { json } from '../../http/replies/reply.ts'
import { backupPauseMs } from '../../limits/jobs.ts'

/** See `Sql`. */
export type PauseWrites = (() => Promise<() => void>) | null

/** What a service key needs for everything about backups. */
export const backupScope = (): string => 'system:backup:*:hold'

interface WritePause {
  readonly id: string
  readonly end: () => void
}

/** `pauseWrites` is null where databases are not the server's own files. */
export function createBackupEndpoints(pauseWrites: PauseWrites): readonly Endpoint[] {
  let current: WritePause | null = null
  let isPending = false

  async function begin(): Promise<WritePause> {
    if (pauseWrites === null) throw notFound('Backup')
    if (current || isPending) throw conflict('Another backup is at its moment')
    isPending = true
    const release = await pauseWrites().finally(() => {
      isPending = false
    })
    const end = (): void => {
      clearTimeout(timer)
      current = null
      release()
    }
    const timer = setTimeout(end, backupPauseMs)
    current = { id: randomUUID(), end }
    return current
  }

  return [
    endpoint({
      name: 'system.holdForBackup',
      method: 'POST',
      paths: ['/api/backup/hold'],
      tag: 'System',
      summary: 'Have writes wait while a backup begins',
      description: `For \`plinth backup\`. Writes go on when the hold is given back, or after ${backupPauseMs} ms.`,
      credentials: 'service',
      scope: backupScope,
      rateLimit: 'global',
      replies: { 200: { description: 'Nobody writes', schema: z.object({ id: z.string() }) } },
      errors: [404, 409],
      handle: async () => json({ id: (await begin()).id }),
    }),
    endpoint({
      name: 'system.releaseFromBackup',
      method: 'DELETE',
      paths: ['/api/backup/hold/:id'],
      tag: 'System',
      summary: 'Let writes go on',
      description: '404 when the hold was over by itself: then what was opened meanwhile is not of one moment.',
      credentials: 'service',
      scope: backupScope,
      rateLimit: 'global',
      replies: {
        200: { description: 'Nobody has written since the hold began', schema: z.object({ ok: z.literal(true) }) },
      },
      errors: [404],
      handle({ params }) {
        if (current === null || current.id !== params.id) throw notFound('Hold')
        current.end()
        return json({ ok: true })
      },
    }),
  ]
}
