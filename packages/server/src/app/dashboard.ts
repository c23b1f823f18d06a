/** Opens the dashboard with the functions that it needs of the users feature. */
import { type Dashboard, openDashboard } from '../features/dashboard/index.ts'
import type { DashboardSessions } from '../features/dashboard/sessions.ts'
import type { Users } from '../features/users/index.ts'
import { version } from '../version.ts'
import type { AppContext } from './context.ts'
import type { Engines } from './engines.ts'

export const openDashboardFor = (
  { context, engines }: { readonly context: AppContext; readonly engines: Engines },
  { users, sessions }: { readonly users: Users; readonly sessions: DashboardSessions },
): Promise<Dashboard> =>
  openDashboard({
    sql: engines.sql,
    secret: context.settings.secret,
    log: context.log,
    sessions,
    signInTo: users.signInTo,
    findActive: users.findActive,
    config: () => context.config.dashboard,
    mode: () => context.config.mode,
    publicUrl: context.settings.publicUrl,
    trustProxy: context.settings.trustProxy,
    pageFolder: context.substitutes.dashboardFolder,
    version,
    clock: context.clock,
  })
