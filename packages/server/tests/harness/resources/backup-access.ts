/** Access to the backup endpoints, for the endpoint matrix. */
import type { Client } from '../client.ts'

const backup = { kind: 'service', scope: '*', isJudgedByBody: true } as const

export const backupAccess = {
  'system.listBackups': {
    kind: 'service',
    scope: 'system:backup:*:read',
    send: (client: Client) => client.get('/api/backups'),
  },
  // No folder is set: who may start one gets 404.
  'system.startBackup': {
    kind: 'service',
    scope: 'system:backup:*:write',
    isJudgedByBody: true,
    send: (client: Client) => client.request('POST', '/api/backups'),
  },
  'system.verifyBackup': {
    kind: 'service',
    scope: 'system:backup:*:write',
    isJudgedByBody: true,
    send: (client: Client) => client.request('POST', '/api/backups/plinth-none.tar/verify'),
  },
  'system.holdForBackup': {
    ...backup,
    /** Releases the hold at once. The endpoint returns 404 on engines without local files. */
    async send(client: Client) {
      const answer = await client.request('POST', '/api/backup/hold')
      if (answer.status === 200) await client.delete(`/api/backup/hold/${answer.body.id}`)
      return answer
    },
  },
  'system.leaseForBackup': {
    ...backup,
    /** Ends the lease at once. */
    async send(client: Client) {
      const answer = await client.request('POST', '/api/backup/lease')
      if (answer.status === 200) await client.delete(`/api/backup/lease/${answer.body.id}`)
      return answer
    },
  },
  'system.renewBackupLease': { ...backup, send: (client: Client) => client.request('POST', '/api/backup/lease/none') },
  'system.endBackupLease': { ...backup, send: (client: Client) => client.delete('/api/backup/lease/none') },
  'system.releaseFromBackup': { ...backup, send: (client: Client) => client.delete('/api/backup/hold/none') },
} as const
