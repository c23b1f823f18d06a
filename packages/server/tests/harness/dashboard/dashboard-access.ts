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
const open = { roles: [], isForEveryone: true } as const
/** Signing in needs the page, but no session: without its header it is 403. */
const page = (path: string) => ({ ...open, send: (client: Client) => client.post(path, {}) })

export const dashboardMatrix: Readonly<Record<string, DashboardUse>> = {
  'dashboard.page': { ...open, send: (client) => client.get('') },
  'dashboard.view': { ...open, send: (client) => client.get('/users?role=admin') },
  'dashboard.asset': { ...open, send: (client) => client.get('/assets/none.js') },
  'dashboard.signIn': page('/api/session'),
  'dashboard.enroll': page('/api/session/enroll'),
  'dashboard.verifyFactor': page('/api/session/mfa'),
  'dashboard.passkeyOptions': page('/api/session/passkey-options'),
  'dashboard.signInWithPasskey': page('/api/session/passkey'),
  'dashboard.getSession': { roles: everyRole, send: (client) => client.get('/api/session') },
  'dashboard.signOut': { roles: everyRole, send: (client) => client.delete('/api/session') },
}
