/** Who may call each endpoint that only the dashboard has. */
import type { Answer, Client } from '../client.ts'
import type { TestAdministrator } from './administrators.ts'

export interface DashboardUse {
  readonly roles: readonly string[]
  /** Served without a session: the page, and signing in. */
  readonly isForEveryone?: true
  /** Paths are below `/dashboard`. */
  readonly send: (client: Client, administrator: TestAdministrator) => Promise<Answer>
}

const everyRole = ['owner', 'editor', 'support', 'viewer']
const writers = ['owner', 'editor']
const open = { roles: [], isForEveryone: true } as const
/** Signing in needs the page, but no session: without its header it is 403. */
const page = (path: string) => ({ ...open, send: (client: Client) => client.post(path, {}) })

const bulk = '/api/bulk/shared/tables/denied'
const startBulk = async (client: Client): Promise<Answer> => {
  const answer = await client.post(bulk, { action: 'delete', filter: [['id', '==', 'none']], limit: 1 })
  // The table has one at a time.
  if (answer.status !== 409) return answer
  await untilNone(client)
  return startBulk(client)
}
const untilNone = async (client: Client): Promise<void> => {
  const { body } = await client.get(bulk)
  if (body.jobs.some(({ state }: { state: string }) => state === 'waiting' || state === 'running'))
    return untilNone(client)
}
/** The id of a job of an earlier test. */
const bulkJob = async (client: Client): Promise<string> => (await client.get(bulk)).body.jobs?.[0]?.id ?? 'none'

export const dashboardMatrix: Readonly<Record<string, DashboardUse>> = {
  'dashboard.page': { ...open, send: (client) => client.get('') },
  'dashboard.view': { ...open, send: (client) => client.get('/users?role=admin') },
  'dashboard.asset': { ...open, send: (client) => client.get('/assets/none.js') },
  'dashboard.signIn': page('/api/session'),
  'dashboard.enroll': page('/api/session/enroll'),
  'dashboard.verifyFactor': page('/api/session/mfa'),
  'dashboard.passkeyOptions': page('/api/session/passkey-options'),
  'dashboard.signInWithPasskey': page('/api/session/passkey'),
  'dashboard.overview': { roles: everyRole, send: (client) => client.get('/api/overview') },
  'dashboard.listRequests': { roles: everyRole, send: (client) => client.get('/api/requests') },
  'dashboard.getRequest': {
    roles: everyRole,
    async send(client) {
      const { body } = await client.get('/api/requests?limit=1')
      return client.get(`/api/requests/${body.items?.[0]?.requestId ?? 'none'}`)
    },
  },
  'dashboard.listViews': { roles: everyRole, send: (client) => client.get('/api/views/data') },
  'dashboard.saveView': {
    roles: ['owner', 'editor', 'support'],
    send: (client) => client.request('PUT', '/api/views/data/mine', { body: { columns: ['id'] } }),
  },
  'dashboard.deleteView': {
    roles: ['owner', 'editor', 'support'],
    async send(client) {
      await client.request('PUT', '/api/views/data/other', { body: {} })
      return client.delete('/api/views/data/other')
    },
  },
  'dashboard.startBulkJob': { roles: writers, send: startBulk },
  'dashboard.listBulkJobs': { roles: everyRole, send: (client) => client.get(bulk) },
  'dashboard.getBulkJob': {
    roles: everyRole,
    send: async (client) => client.get(`${bulk}/${await bulkJob(client)}`),
  },
  'dashboard.cancelBulkJob': {
    roles: writers,
    send: async (client) => client.delete(`${bulk}/${await bulkJob(client)}`),
  },
  'dashboard.pushAudience': { roles: everyRole, send: (client) => client.get('/api/push-audience') },
  'dashboard.startViewAs': {
    roles: ['owner', 'support'],
    send: (client, { id }) => client.post(`/api/view-as/${id}`, undefined),
  },
  'dashboard.endViewAs': { roles: everyRole, send: (client) => client.delete('/api/view-as') },
  'dashboard.listInstances': { roles: everyRole, send: (client) => client.get('/api/instances/space') },
  'dashboard.getSettings': { roles: everyRole, send: (client) => client.get('/api/settings') },
  'dashboard.listServiceKeys': { roles: everyRole, send: (client) => client.get('/api/service-keys') },
  'dashboard.listMails': { roles: everyRole, send: (client) => client.get('/api/mails') },
  'dashboard.previewMail': { roles: everyRole, send: (client) => client.get('/api/mails/magic-link') },
  'dashboard.showMailPreview': { ...open, send: (client) => client.get('/mail-preview/none') },
  'dashboard.sendTestMail': { roles: ['owner'], send: (client) => client.post('/api/mails/magic-link/test', {}) },
  'dashboard.tableUsage': { roles: everyRole, send: (client) => client.get('/api/table-usage') },
  'dashboard.bucketUsage': { roles: everyRole, send: (client) => client.get('/api/storage-usage') },
  'dashboard.bucketUsers': { roles: everyRole, send: (client) => client.get('/api/storage-usage/buckets/denied') },
  'dashboard.userUsage': { roles: everyRole, send: (client, { id }) => client.get(`/api/storage-usage/users/${id}`) },
  'dashboard.getSession': { roles: everyRole, send: (client) => client.get('/api/session') },
  'dashboard.signOut': { roles: everyRole, send: (client) => client.delete('/api/session') },
}
