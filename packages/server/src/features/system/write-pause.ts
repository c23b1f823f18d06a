/**
 * Write pause for backups: writes wait while `plinth backup` opens the databases. The command ends the pause; it also
 * ends by itself after `backupPauseMs`, so that a killed command only delays writes.
 */
import { randomUUID } from 'node:crypto'
import { z } from '../../base/schemas/z.ts'
import { conflict, notFound } from '../../errors.ts'
import { type Endpoint, endpoint } from '../../http/endpoint.ts'
import { json } from '../../http/replies/reply.ts'
import { backupPauseMs } from '../../limits/jobs.ts'

/** See `Sql`. */
export type PauseWrites = (() => Promise<() => void>) | null

/** The scope that a service key needs for backups. */
export const backupScope = (): string => 'system:backup:*:hold'

interface WritePause {
  readonly id: string
  readonly end: () => void
}

/** `pauseWrites` is null if the databases are not the server's own files. */
export function createBackupEndpoints(pauseWrites: PauseWrites): readonly Endpoint[] {
  let current: WritePause | null = null
  let isPending = false

  async function begin(): Promise<WritePause> {
    if (pauseWrites === null) throw notFound('Backup')
    if (current || isPending) throw conflict('Another backup is starting; retry in a few seconds')
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
      changes: false,
      paths: ['/api/backup/hold'],
      tag: 'System',
      summary: 'Pause writes while a backup starts',
      description: `For \`plinth backup\`. Writes resume when the pause is released, or after ${backupPauseMs} ms.`,
      credentials: 'service',
      scope: backupScope,
      rateLimit: 'global',
      replies: { 200: { description: 'Writes are paused', schema: z.object({ id: z.string() }) } },
      errors: [404, 409],
      handle: async () => json({ id: (await begin()).id }),
    }),
    endpoint({
      name: 'system.releaseFromBackup',
      method: 'DELETE',
      changes: false,
      paths: ['/api/backup/hold/:id'],
      tag: 'System',
      summary: 'Resume writes',
      description: '404 if the pause had expired: the databases opened meanwhile are not a consistent snapshot.',
      credentials: 'service',
      scope: backupScope,
      rateLimit: 'global',
      replies: {
        200: { description: 'No write was committed during the pause', schema: z.object({ ok: z.literal(true) }) },
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
