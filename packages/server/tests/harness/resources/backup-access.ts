/** Rows of the matrix of endpoints: who may have writes wait for a backup. */
import type { Client } from '../client.ts'

const backup = { kind: 'service', scope: '*', isJudgedByBody: true } as const

export const backupAccess = {
  'system.holdForBackup': {
    ...backup,
    /** Gives the hold back at once; 404 where there is nothing of ours to back up. */
    async ask(client: Client) {
      const answer = await client.request('POST', '/api/backup/hold')
      if (answer.status === 200) await client.delete(`/api/backup/hold/${answer.body.id}`)
      return answer
    },
  },
  'system.leaseForBackup': {
    ...backup,
    /** Ends the lease at once. */
    async ask(client: Client) {
      const answer = await client.request('POST', '/api/backup/lease')
      if (answer.status === 200) await client.delete(`/api/backup/lease/${answer.body.id}`)
      return answer
    },
  },
  'system.renewBackupLease': { ...backup, ask: (client: Client) => client.request('POST', '/api/backup/lease/none') },
  'system.endBackupLease': { ...backup, ask: (client: Client) => client.delete('/api/backup/lease/none') },
  'system.releaseFromBackup': { ...backup, ask: (client: Client) => client.delete('/api/backup/hold/none') },
} as const
