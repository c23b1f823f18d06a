/** Opens the dashboard with the functions that it needs of other features. */
import { hostname } from 'node:os'
import type { Config } from '../config/config.ts'
import { openNodeDirectory } from '../engines/cluster/node-directory.ts'
import { type Dashboard, openDashboard } from '../features/dashboard/index.ts'
import type { DashboardSessions } from '../features/dashboard/sessions.ts'
import { describeServer } from '../features/dashboard/settings/server-settings.ts'
import type { Records } from '../features/records/index.ts'
import type { Users } from '../features/users/index.ts'
import type { RateLimiter } from '../http/security/rate-limit.ts'
import { decisiveClauses, stepsOf } from '../query/tracing/decisive-clauses.ts'
import type { Clause } from '../query/tracing/trace.ts'
import { version } from '../version.ts'
import type { AppContext } from './context.ts'
import { type Engines, findFaults } from './engines.ts'

interface DashboardParts {
  readonly context: AppContext
  readonly engines: Engines
  readonly limiter: RateLimiter
}

interface DashboardNeeds {
  readonly users: Users
  readonly records: Records
  readonly sessions: DashboardSessions
}

export function openDashboardFor(
  { context, engines, limiter }: DashboardParts,
  { users, records, sessions }: DashboardNeeds,
): Promise<Dashboard> {
  const node = { id: crypto.randomUUID(), host: hostname() }
  return openDashboard({
    sql: engines.sql,
    secret: context.settings.secret,
    log: context.log,
    sessions,
    signInTo: users.signInTo,
    findActive: users.findActive,
    viewedUsers: users,
    mails: users.mailSamples,
    limiter,
    serviceKeys: () => context.config.serviceKeys,
    serverSettings: () => {
      const { config, settings } = context
      return describeServer({ config, settings, mailRoute: engines.mails.route, version })
    },
    config: () => context.config.dashboard,
    mode: () => context.config.mode,
    publicUrl: context.settings.publicUrl,
    trustProxy: context.settings.trustProxy,
    pageFolder: context.substitutes.dashboardFolder,
    version,
    clock: context.clock,
    instanceTables(name) {
      const namespace = context.config.namespaces.get(name)
      return namespace?.instance ? [...namespace.tables.keys()] : null
    },
    findFaults: () => findFaults(engines),
    inFlight: () => context.metrics.inFlight,
    node,
    openPeers: (answer) =>
      openNodeDirectory({
        channel: 'requests',
        bus: context.settings.redisUrl === null ? null : engines.cluster,
        own: node.id,
        answer,
        log: context.log,
      }),
    async explainRequest(question, caller) {
      const { allowed, verdict, reason, clauses, suggestions } = await records.explainAccess(caller, question)
      return { allowed, verdict, reason, clauses: decidingClauses(clauses), suggestions }
    },
    isHidden: (namespace, field) => hiddenFieldsOf(context.config, namespace).has(field),
  })
}

/** Of each step of an operation that is false, or of the only one. */
function decidingClauses(clauses: readonly Clause[]): readonly Clause[] {
  const steps = stepsOf(clauses)
  const denying = steps.filter(([root]) => root?.result !== true)
  return (denying.length > 0 ? denying.slice(0, 1) : steps).flatMap(decisiveClauses)
}

const hiddenFields = new WeakMap<Config, Map<string, ReadonlySet<string>>>()

/** The hidden fields of all tables of a namespace, computed once for each configuration. */
function hiddenFieldsOf(config: Config, namespace = ''): ReadonlySet<string> {
  const known = hiddenFields.get(config) ?? new Map<string, ReadonlySet<string>>()
  hiddenFields.set(config, known)
  const found = known.get(namespace)
  if (found) return found
  const tables = [...(config.namespaces.get(namespace)?.tables.values() ?? [])]
  const names = new Set(tables.flatMap(({ table }) => [...table.hidden]))
  known.set(namespace, names)
  return names
}
