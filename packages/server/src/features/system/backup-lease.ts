/**
 * Backup leases over HTTP: a backup takes one before it pauses writes and renews it until it has copied every file.
 * Files replaced or deleted meanwhile keep their bytes, on every node.
 */
import { z } from '../../base/schemas/z.ts'
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
  /** Null if too many leases are active. */
  take(): Promise<Lease | null>
  /** Null if the lease has expired. */
  renew(id: string): Promise<Lease | null>
  /** False if the lease had expired. */
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
      changes: false,
      paths: ['/api/backup/lease'],
      summary: 'Create a lease that keeps the bytes of replaced and deleted files',
      description: `For backups. The lease expires ${backupLeaseMs / 1000} seconds after its last renewal.`,
      replies: { 200: { description: 'The lease', schema: leaseSchema } },
      errors: [409],
      async handle() {
        const lease = await leases.take()
        if (!lease) throw conflict('Too many backups are running; retry after one of them has finished')
        return show(lease)
      },
    }),
    endpoint({
      ...shared,
      name: 'system.renewBackupLease',
      method: 'POST',
      changes: false,
      paths: ['/api/backup/lease/:id'],
      summary: 'Renew a lease',
      description: '404 if it has expired: files that the backup needs may have been removed since.',
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
      changes: false,
      paths: ['/api/backup/lease/:id'],
      summary: 'End a lease',
      description: '404 if it had expired: files that the backup needs may have been removed since.',
      replies: {
        200: { description: 'No file was removed during the lease', schema: z.object({ ok: z.literal(true) }) },
      },
      errors: [404],
      async handle({ params }) {
        if (!(await leases.end(params.id ?? ''))) throw notFound('Lease')
        return json({ ok: true })
      },
    }),
  ]
}
