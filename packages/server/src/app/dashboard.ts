/** Opens the dashboard with the functions that it needs of the users feature. */
import { type Dashboard, openDashboard } from '../features/dashboard/index.ts'
import type { Advice } from '../features/dashboard/requests/endpoints.ts'
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
    async findFaults() {
      const { sql, blobs, cluster } = engines
      const [sqlFault, blobsFault] = await Promise.all([sql.findFault(), blobs.findFault()])
      return { sql: sqlFault, blobs: blobsFault, cluster: cluster.findFault() }
    },
    advise: () => adviseOn(context),
    inFlight: () => context.metrics.inFlight,
  })

/** Settings that a server in use should have. */
function adviseOn({ config, settings }: AppContext): readonly Advice[] {
  if (config.mode === 'development') return []
  const { auth, dashboard } = config
  return [
    ...(settings.publicUrl === null
      ? [
          {
            kind: 'public-url',
            message: 'Set PLINTH_PUBLIC_URL, which links in mails and signed URLs begin with',
          } as const,
        ]
      : []),
    ...(auth.mail?.smtp ? [] : [{ kind: 'mail', message: 'Configure a mail server in auth.mail.smtp' } as const]),
    ...(dashboard?.requiresMfa === false
      ? [{ kind: 'second-factor', message: 'Require a second factor: dashboard.requireMfa is false' } as const]
      : []),
  ]
}
