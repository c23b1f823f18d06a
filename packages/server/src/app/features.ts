/**
 * Creates the features and passes each the functions that it needs of others. The only file that imports every feature.
 */
import { createRuleEvaluator, type RuleEvaluator } from '../access/rule-evaluator.ts'
import { keyPermits } from '../access/service-keys.ts'
import { systemClock } from '../base/clock.ts'
import { createUuid7 } from '../base/crypto/ids.ts'
import { publicUsersTable } from '../config/sections/auth/public-users.ts'
import { tracedHosts } from '../engines/hosts/traced-hosts.ts'
import { openHosts } from '../engines/open.ts'
import { type Analytics, openAnalytics } from '../features/analytics/index.ts'
import { type AuthHooks, userEventsLog } from '../features/auth-hooks.ts'
import type { BeforeHooks } from '../features/before-hooks.ts'
import type { Dashboard } from '../features/dashboard/index.ts'
import { type DashboardSessions, openDashboardSessions } from '../features/dashboard/sessions.ts'
import { administratorPermits } from '../features/dashboard/sign-in.ts'
import type { Feature } from '../features/feature.ts'
import { createFunctions, type Functions } from '../features/functions/index.ts'
import { createKv } from '../features/kv/index.ts'
import { createPush, type Push, type PushDeps } from '../features/push/index.ts'
import { createRecords, type Records } from '../features/records/index.ts'
import { createRoomDatabases } from '../features/rooms/database.ts'
import { openRooms, type RoomsFeature } from '../features/rooms/index.ts'
import { openSqlDatabases } from '../features/sql/index.ts'
import { createStorage, type Storage } from '../features/storage/index.ts'
import { storageNamespace } from '../features/storage/migrations.ts'
import { createSubscriptions, type Subscriptions } from '../features/subscriptions/index.ts'
import { createSystem } from '../features/system/index.ts'
import { openUsers, type Users } from '../features/users/index.ts'
import { sealClaims } from '../features/users/sessions/tokens.ts'
import { createVectors } from '../features/vector/index.ts'
import { createInternalRequests, type RunInternally } from '../http/internal-request.ts'
import { createResponseLimits, type ResponseLimits } from '../http/replies/large-responses.ts'
import { countInstance, type RateLimiter } from '../http/security/rate-limit.ts'
import { Sockets } from '../http/sockets/sockets.ts'
import { version } from '../version.ts'
import { createAdvise } from './advice/advice.ts'
import type { AdviceSources } from './advice/sources.ts'
import { type Api, createApi } from './api.ts'
import { openBackups } from './backups.ts'
import type { AppContext } from './context.ts'
import { openDashboardFor } from './dashboard.ts'
import { type Engines, findFaults } from './engines.ts'
import type { Listener } from './listener.ts'
import { openNodes } from './node-status.ts'
import { hostEnvironment } from './project-functions.ts'
import { createRunRuleSource } from './shadow-rules.ts'

export interface FeaturesDeps {
  readonly context: AppContext
  readonly engines: Engines
  readonly listener: Listener
  readonly limiter: RateLimiter
  /** The names of the leases of jobs that this node holds. */
  readonly ownLeases: () => readonly string[]
}

/** What features share. */
interface Shared extends FeaturesDeps {
  readonly ruleEvaluator: RuleEvaluator
  /** One for all features: it bounds how many large responses are in memory. */
  readonly limits: ResponseLimits
}

export interface Features {
  readonly all: readonly Feature[]
  readonly api: Api
  readonly sockets: Sockets
  readonly users: Users
  readonly analytics: Analytics
  readonly dashboard: Dashboard
  readonly functions: Functions
}

/** Creates every feature. Each is added to `opened` at once, so that a later failure closes it. */
export async function openFeatures(deps: FeaturesDeps, opened: AsyncDisposableStack): Promise<Features> {
  const { context, engines } = deps
  const shared: Shared = {
    ...deps,
    ruleEvaluator: createRuleEvaluator({ sql: engines.sql, namespaces: () => context.config.namespaces }),
    limits: createResponseLimits(() => context.config.limits.responseBytes),
  }
  const keep = <F extends Feature>(feature: F): F => {
    if (feature.close) opened.defer(async () => feature.close?.())
    return feature
  }
  /** Created by the first request, when all features are there. */
  let running: RunInternally | null = null
  const run: RunInternally = (request) => {
    running ??= createInternalRequests({ ...api, log: context.log })
    return running(request)
  }
  const records = keep(
    recordsOf(shared, {
      hooks: (namespace) => functions.hooks.of(namespace),
      background: () => functions.background,
      findCaller: (userId) => users.findCaller(userId),
      dashboard: () => dashboard,
      bulkJobs: () => functions.bulkJobs,
    }),
  )
  const push = keep(await pushOf(shared, (tx, user) => users.lockActiveUser(tx, user)))
  const sessions = await openDashboardSessions({ sql: engines.sql, clock: context.clock })
  const users: Users = keep(await usersOf(shared, { records, push, sessions, hooks: () => functions.authHooks() }))
  const dashboard: Dashboard = keep(await openDashboardFor(deps, { users, records, sessions }))
  const storage = keep(storageOf(shared, { users, records, hooks: (namespace) => functions.hooks.of(namespace) }))
  const sockets = socketsOf(context, users)
  const subscriptions = keep(subscriptionsOf(shared, records, sockets))
  const rooms = keep(roomsOf(shared, { run, push, sockets }))
  const vector = keep(vectorsOf(shared, records))
  const kv = keep(kvOf(shared, records))
  const sqlDatabases = keep(openSqlDatabases(engines.sandboxes))
  const analytics = keep(
    await openAnalytics({
      sql: engines.sql,
      config: () => context.config.analytics,
      pathOf: (name) => api.pathOf(name),
      ...common(context),
    }),
  )
  const functions: Functions = keep(functionsOf(shared, records, run))
  const nodes = openNodes(shared, { sockets, subscriptions, rooms })
  opened.defer(async () => nodes.close())
  const backups = await openBackups(context)
  if (typeof backups !== 'string') opened.defer(() => backups.close())
  const system = keep(
    systemOf(shared, {
      backups,
      nodes,
      users,
      storage,
      records,
      dashboard,
      functions: () => functions,
      api: () => api,
    }),
  )
  const all = [
    records,
    subscriptions,
    rooms,
    vector,
    kv,
    storage,
    sqlDatabases,
    users,
    push,
    analytics,
    system,
    functions,
    dashboard,
  ]
  const api = createApi(all)
  return { all, api, sockets, users, analytics, dashboard, functions }
}

/** What most features need. */
const common = (context: AppContext) => ({
  responseBytes: () => context.config.limits.responseBytes,
  secret: context.settings.secret,
  clock: context.clock,
  log: context.log,
})

/** What of functions, users and the dashboard the records need; they are created later. */
interface LaterOfRecords {
  readonly hooks: BeforeHooks['of']
  readonly background: () => Functions['background']
  readonly findCaller: Users['findCaller']
  readonly dashboard: () => Dashboard
  readonly bulkJobs: () => Functions['bulkJobs']
}

const recordsOf = (
  { context, engines, limiter, limits, ruleEvaluator }: Shared,
  { hooks, background, findCaller, dashboard, bulkJobs }: LaterOfRecords,
): Records =>
  createRecords({
    sql: engines.sql,
    indexUses: engines.indexUses,
    ruleEvaluator,
    bus: engines.cluster,
    counters: engines.cluster,
    namespaces: () => context.config.namespaces,
    storedNamespaces: () => context.config.storedNamespaces,
    changes: () => context.config.changes,
    writeBudgetBytes: () => context.config.limits.writeBytes,
    countInstance: (caller) => countInstance(limiter, caller),
    hooks: { of: hooks },
    bulk: {
      jobs: bulkJobs,
      findAdministrator: (actor) => dashboard().findAdministrator(actor),
      recordEnd: (end) => dashboard().audit.recordJob({ ...end, action: 'records.bulk' }),
    },
    rulesTools: {
      callers: { find: findCaller, seal: sealClaims },
      buckets: () => context.config.buckets,
      mode: () => context.config.mode,
      runRuleSource: createRunRuleSource(context.settings.environment),
    },
    jobs: {
      enter: (address) => background().enter(address),
      leave: (address) => background().leave(address),
      findReadUpTo: (address) => background().findReadUpTo(address),
      findRepeatable: (ids) => background().findRepeatable(ids),
      checkJobs: (jobs) => background().checkJobs(jobs),
    },
    limits,
    ...common(context),
  })

const vectorsOf = ({ context, engines, limits }: Shared, { trimEffectsOf }: Records): Feature =>
  createVectors({ ...common(context), sql: engines.sql, vectors: engines.vectors, limits, trimEffectsOf })
const kvOf = ({ context, engines }: Shared, { trimEffectsOf }: Records): Feature =>
  createKv({ ...common(context), sql: engines.sql, namespaces: () => context.config.kv, trimEffectsOf })

const pushOf = ({ context, engines }: Shared, lockActiveUser: PushDeps['lockActiveUser']): Promise<Push> =>
  createPush({
    sql: engines.sql,
    config: () => context.config.push,
    outboundAllow: () => context.config.outbound.allow,
    lockActiveUser,
    recorder: context.substitutes.push ?? null,
    ...common(context),
  })

interface UsersNeeds {
  readonly records: Records
  readonly push: Push
  readonly sessions: DashboardSessions
  readonly hooks: () => AuthHooks
}

function usersOf(
  { context, engines, listener, limiter }: Shared,
  { records, push, sessions, hooks }: UsersNeeds,
): Promise<Users> {
  const { settings, config } = context
  const { mode } = config
  return openUsers({
    sql: engines.sql,
    cluster: engines.cluster,
    limiter,
    syncPublicUser: records.platformRecordWriter(publicUsersTable),
    appendUserEvent: records.platformEventWriter(userEventsLog),
    hooks,
    config: () => context.config.auth,
    mails: engines.mails,
    passwordCost: context.passwordCost,
    publicUrl: () => settings.publicUrl ?? (mode === 'development' ? listener.url : null),
    onRevoking(tx, target) {
      push.forget(tx, target)
      if (target.sessionId === null) sessions.endAll(tx, target.userId)
    },
    hasDashboard: () => context.config.dashboard !== null,
    dashboardRoles: () => [...(context.config.dashboard?.roles.keys() ?? [])],
    onDashboardRoleChanged: sessions.endAll,
    mayEndLastOwner: context.mayEndLastOwner,
    ...common(context),
  })
}

const storageOf = (
  { context, engines, ruleEvaluator }: Shared,
  { users, records, hooks }: { readonly users: Users; readonly records: Records; readonly hooks: BeforeHooks['of'] },
): Storage =>
  createStorage({
    // With a namespace of this name, functions of `storage.*` are for its tables.
    hooks: () => (context.config.namespaces.has('storage') ? null : hooks('storage')),
    appendChange: records.platformLog(storageNamespace),
    store: engines.store,
    blobs: engines.blobs,
    images: engines.images,
    buckets: () => context.config.buckets,
    ruleEvaluator,
    issuerPermits: async (name, scope) =>
      keyPermits(context.config.serviceKeys, name, scope, context.clock) ||
      administratorPermits({ config: () => context.config.dashboard, findActive: users.findActive }, name, scope),
    reloadUser: users.reloadUser,
    refreshClaims: users.refreshClaims,
    namesOf: users.namesOf,
    publicUrl: () => context.settings.publicUrl,
    ...common(context),
  })

const functionsOf = ({ context, engines, listener }: Shared, records: Records, run: RunInternally): Functions => {
  const { settings, config, log } = context
  const url = () => settings.publicUrl ?? listener.url
  const { hosts: size, memoryBytes } = config.functions
  const hosts = openHosts({
    size,
    memoryBytes,
    environment: hostEnvironment(settings.environment),
    // At the start the listener is not open yet.
    url: () => settings.publicUrl ?? `http://${settings.host}:${settings.port}`,
    networks: () => context.config.outbound.allow,
    fetchRelay: context.substitutes.fetchRelay ?? null,
    log,
  })
  return createFunctions({
    ...common(context),
    hosts: tracedHosts(hosts),
    mails: engines.mails,
    webhookFetch: context.substitutes.webhookFetch ?? null,
    sql: engines.sql,
    logs: records.feed,
    settings,
    config: () => context.config,
    counters: engines.cluster,
    run,
    bulkWork: records.bulkWork,
    url,
  })
}

/** The sockets of all features, which follow the sessions of their users. */
function socketsOf({ clock, log }: AppContext, users: Users): Sockets {
  const { authenticate, refreshClaims } = users
  const sockets = new Sockets({
    clock,
    log,
    authenticate: async (token) => refreshClaims(await authenticate(token)),
    renew: refreshClaims,
  })
  users.onRevoked((who) => sockets.endUser(who))
  users.onChanged((userId) => sockets.refreshUser(userId))
  return sockets
}

const subscriptionsOf = ({ context, engines, listener }: Shared, records: Records, sockets: Sockets): Subscriptions =>
  createSubscriptions({
    feed: records.feed,
    resolve: records.resolve,
    namespaces: () => context.config.namespaces,
    broadcasts: () => context.config.broadcasts,
    cluster: engines.cluster,
    sockets,
    publish: listener.publish,
    ...common(context),
  })

function roomsOf(
  { context, engines, listener, ruleEvaluator }: Shared,
  { run, push, sockets }: { readonly run: RunInternally; readonly push: Push; readonly sockets: Sockets },
): RoomsFeature {
  const { settings, clock } = context
  return openRooms({
    sql: engines.sql,
    cluster: settings.redisUrl === null ? null : engines.cluster,
    namespaces: () => context.config.rooms,
    ruleEvaluator,
    mode: () => context.config.mode,
    sockets,
    publish: listener.publish,
    databases: createRoomDatabases(run, createUuid7(clock)),
    push: push.room,
    // With a manual clock in tests, timers of rooms follow that clock.
    elapsedMs: clock === systemClock ? () => performance.now() : () => clock.now(),
    ...common(context),
  })
}

interface SystemNeeds extends Omit<AdviceSources, 'context'> {
  readonly users: Users
  readonly storage: Storage
  readonly functions: () => Functions
  readonly api: () => Api
}

function systemOf(
  { context, engines, listener }: Shared,
  { users, storage, functions, api, ...advised }: SystemNeeds,
): Feature {
  return createSystem({
    ...common(context),
    config: () => context.config,
    queryLogs: (question) => advised.nodes.logs.query(question),
    queryNodes: () => advised.nodes.status.query(null),
    backups: advised.backups,
    advise: createAdvise({ context, ...advised }),
    version,
    findFaults: () => findFaults(engines),
    metrics: () => context.metrics.text(),
    functions: () => functions().code.current.outlines,
    async loadOpenApi() {
      const { buildOpenApi } = await import('../http/pages/openapi.ts')
      const { endpoints, socketEndpoints } = api()
      return (tables, functions) => buildOpenApi({ endpoints, sockets: socketEndpoints, version, tables, functions })
    },
    loadDocsPage: () => import('../http/pages/docs-page.ts'),
    url: () => context.settings.publicUrl ?? listener.url,
    needsSetup: users.needsSetup,
    pauseWrites: engines.sql.pauseWrites,
    leases: storage.leases,
  })
}
