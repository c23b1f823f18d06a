/**
 * The dashboard: its page, the sessions of administrators, and the endpoints that only it has. Everything else it does
 * through the endpoints of the API, which administrators call as service callers (`http/mounted-endpoints`).
 */
import type { Clock } from '../../base/clock.ts'
import type { TrustProxy } from '../../base/network/address.ts'
import type { Mode } from '../../config/config.ts'
import type { DashboardConfig } from '../../config/sections/dashboard/dashboard.ts'
import type { DashboardAccess } from '../../http/security/dashboard-access.ts'
import { housekeepingIntervalMs } from '../../limits/sqlite.ts'
import type { Feature } from '../feature.ts'
import { createPage } from './page.ts'
import { createSessionEndpoints, type SignInMethods } from './session-endpoints.ts'
import type { DashboardSessions } from './sessions.ts'
import { type AdministratorAccount, createFindSession, createTarget, type DashboardTarget } from './sign-in.ts'

export interface DashboardDeps<Passkey> {
  readonly sessions: DashboardSessions
  /** The ways to sign in, with the same checks as for the API. */
  readonly signInTo: (target: DashboardTarget) => SignInMethods<Passkey>
  /** The account, unless it is disabled or was deleted. */
  readonly findActive: (userId: string) => Promise<AdministratorAccount | null>
  /** Null where the dashboard is switched off. */
  readonly config: () => DashboardConfig | null
  readonly mode: () => Mode
  readonly publicUrl: string | null
  readonly trustProxy: TrustProxy
  /** In place of the folder of the built page. */
  readonly pageFolder?: string | undefined
  readonly version: string
  readonly clock: Clock
}

export interface Dashboard extends Feature {
  /** Authenticates requests from the page. */
  readonly access: DashboardAccess
}

export function createDashboard<Passkey>(deps: DashboardDeps<Passkey>): Dashboard {
  const { sessions, publicUrl, trustProxy, clock } = deps
  const access: DashboardAccess = {
    findSession: createFindSession(deps),
    publicUrl,
    trustProxy,
    now: () => clock.now(),
  }
  const signIn = deps.signInTo(createTarget(deps))
  return {
    name: 'dashboard',
    access,
    endpoints: [],
    dashboardEndpoints: [
      ...createPage({ folder: deps.pageFolder }),
      ...createSessionEndpoints({ ...deps, access, signIn }),
    ],
    jobs: [{ name: 'dashboard.sweepSessions', intervalMs: housekeepingIntervalMs, run: sessions.sweep }],
  }
}
