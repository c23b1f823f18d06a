/**
 * Leases over HTTP: a backup takes one before its moment and renews it until it has copied every file. Files that are
 * replaced or deleted meanwhile keep their bytes, on every node.
 */
import { z } from 'zod'
import { formatDatetime } from '../../base/text/datetime.ts'
import { conflict, notFound } from '../../errors.ts'
import { type Endpoint, endpoint } from '../../http/endpoint.ts'
import { json } from '../../http/replies/reply.ts'
import { backupLeaseMs } from '../../limits/jobs.ts'
import { backupScope } from './write-pause.ts'

interface Lease {
  readonly id: string
  readonly expiresMs: number
}

/** See `Leases` of storage. */
export interface BackupLeases {
  /** Null where too many live already. */
  take(): Promise<Lease | null>
  /** Null where it has ended. */
  renew(id: string): Promise<Lease | null>
  /** False where it had ended before. */
  end(id: string): Promise<boolean>
}

const show = ({ id, expiresMs }: Lease) => json({ id, expiresAt: formatDatetime(expiresMs) })

export function createLeaseEndpoints(leases: BackupLeases): readonly Endpoint[] {
  const shared = { tag: 'System', credentials: 'service', scope: backupScope, rateLimit: 'global' } as const
  const leaseSchema = z.object({ id: z.string(), expiresAt: z.iso.datetime() })
  return [
    endpoint({
      ...shared,
      name: 'system.leaseForBackup',
      method: 'POST',
      paths: ['/api/backup/lease'],
      summary: 'Keep the bytes of files that are replaced or deleted from now on',
      description: `For backups. The lease ends ${backupLeaseMs / 1000} seconds after it was last renewed.`,
      replies: { 200: { description: 'The lease', schema: leaseSchema } },
      errors: [409],
      async handle() {
        const lease = await leases.take()
        if (!lease) throw conflict('Too many backups hold leases: try again once one of them has ended')
        return show(lease)
      },
    }),
    endpoint({
      ...shared,
      name: 'system.renewBackupLease',
      method: 'POST',
      paths: ['/api/backup/lease/:id'],
      summary: 'Renew a lease',
      description: '404 when it has ended: files that the backup needs may have been removed since.',
      replies: { 200: { description: 'The lease', schema: leaseSchema } },
      errors: [404],
      async handle({ params }) {
        const lease = await leases.renew(params.id ?? '')
        if (!lease) throw notFound('Lease')
        return show(lease)
      },
    }),
    endpoint({
      ...shared,
      name: 'system.endBackupLease',
      method: 'DELETE',
      paths: ['/api/backup/lease/:id'],
      summary: 'End a lease',
      description: '404 when it had ended before: files that the backup needs may have been removed since.',
      replies: {
        200: { description: 'No file was removed while it lasted', schema: z.object({ ok: z.literal(true) }) },
      },
      errors: [404],
      async handle({ params }) {
        if (!(await leases.end(params.id ?? ''))) throw notFound('Lease')
        return json({ ok: true })
      },
    }),
  ]
}
