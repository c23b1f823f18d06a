/**
 * The composition root: builds engines, features and listener from a configuration. The only file that imports every
 * feature; features depend on each other only through the functions passed here.
 */

import { createRuleEvaluator } from './access/rule-evaluator.ts'
import { createServiceKeys, keyPermits } from './access/service-keys.ts'
import { listenerBodyBytes, warnOfBodyBound } from './app/body-bound.ts'
import { closeInTime } from './app/closing.ts'
import { openEngines } from './app/engines.ts'
import { every, openJobs } from './app/jobs.ts'
import { registerJobMetrics, registerSocketMetrics } from './app/metrics.ts'
import { type Clock, systemClock } from './base/clock.ts'
import { createUuid7 } from './base/crypto/ids.ts'
import { createLog, type Log } from './base/log.ts'
import type { Config, Settings } from './config/config.ts'
import { publicUsersTable } from './config/sections/auth/public-users.ts'
import { createSandboxes, openSql, openVectors } from './engines/open.ts'
import type { Sql } from './engines/sql/sql.ts'
import { openAnalytics } from './features/analytics/index.ts'
import type { DrainStage, Feature } from './features/feature.ts'
import { createKv } from './features/kv/index.ts'
import { openPush, type Push } from './features/push/index.ts'
import { createRecords } from './features/records/index.ts'
import { createSchema, type Schema } from './features/records/schema/migrator.ts'
import { createRoomDatabase } from './features/rooms/database.ts'
import { createRooms } from './features/rooms/index.ts'
import { openSqlDatabases } from './features/sql/index.ts'
import { createStorage } from './features/storage/index.ts'
import { createSubscriptions } from './features/subscriptions/index.ts'
import { createSystem } from './features/system/index.ts'
import { openUsers } from './features/users/index.ts'
import { checkVectors, createVectors } from './features/vector/index.ts'
import { createCors } from './http/cors.ts'
import type { Endpoint } from './http/endpoint.ts'
import { createMetrics } from './http/metrics.ts'
import { docsPage, docsPageHeaders } from './http/pages/docs-page.ts'
import { buildOpenApi } from './http/pages/openapi.ts'
import { countInstance, createRateLimiter } from './http/rate-limit.ts'
import { createResponseLimits } from './http/replies/large-responses.ts'
import { openServer, type Served } from './http/server.ts'
import { createSockets } from './http/sockets/sockets.ts'
import { closeMs, closeRequestsMs, closeRoomsMs } from './limits/api.ts'
import { walQuietCheckMs } from './limits/sqlite.ts'
import { version } from './version.ts'

export interface AppOptions {
  readonly config: Config
  readonly settings: Settings
  readonly clock?: Clock
  readonly log?: Log
}

export interface App {
  readonly url: string
  readonly port: number
  /** All endpoint declarations, for tools that describe or test the API. */
  readonly endpoints: readonly Endpoint[]
  /**
   * Applies another configuration from the next request on. Throws `SchemaError` if its tables are incompatible with
   * the data; the old configuration remains active.
   */
  reload(config: Config): Promise<void>
  /** Runs all housekeeping jobs now. */
  tidy(): Promise<void>
  /** A token for the link that creates the first administrator; null once there is one. */
  issueSetupToken(): Promise<string | null>
  /** Shuts down gracefully within 20 seconds; work that hangs is abandoned. */
  close(): Promise<void>
}

/** Opens the databases without serving, for `plinth migrate`. */
export async function openData(options: AppOptions): Promise<{ sql: Sql; schema: Schema }> {
  const { config, settings, clock = systemClock, log = logOf(options) } = options
  const schema = createSchema({ namespaces: () => config.namespaces, log })
  return { schema, sql: await openSql({ ...settings, prepareInstance: schema.prepareInstance, clock, log }) }
}

const logOf = ({ config, settings, clock = systemClock }: AppOptions): Log =>
  createLog({ level: settings.logLevel, format: config.mode === 'development' ? 'pretty' : 'json', clock })

/**
 * Starts the server. Throws `SchemaError` if the data is incompatible with the configuration, `EngineError` if the data
 * folder is locked by another process, and the runtime's error if the port is in use.
 */
export async function openApp(options: AppOptions): Promise<App> {
  const { settings, clock = systemClock, log = logOf(options) } = options
  let config = options.config
  const schema = createSchema({ namespaces: () => config.namespaces, log })
  /** Closed in reverse order, at shutdown or when a later step of the start fails. */
  await using opening = new AsyncDisposableStack()
  const { sql, cluster, blobs, images, store } = await openEngines({ config, settings, clock, log }, schema, opening)
  const keep = <F extends Feature>(feature: F): F => {
    if (feature.close) opening.defer(feature.close)
    return feature
  }
  const metrics = createMetrics()
  const ruleEvaluator = createRuleEvaluator({ sql, namespaces: () => config.namespaces })
  const responseBytes = (): number => config.limits.responseBytes
  const limits = createResponseLimits(responseBytes)
  const records = keep(
    createRecords({
      sql,
      ruleEvaluator,
      bus: cluster,
      namespaces: () => config.namespaces,
      storedNamespaces: () => config.storedNamespaces,
      secret: settings.secret,
      changes: () => config.changes,
      counters: cluster,
      writeBudgetBytes: () => config.limits.writeBytes,
      countInstance: (caller) => countInstance(limiter, caller),
      limits,
      clock,
      log,
    }),
  )
  let limiter = createRateLimiter(cluster, config.rateLimits)
  const push: Push = keep(
    await openPush({
      sql,
      config: () => config.push,
      lockActiveUser: (tx, user) => users.lockActiveUser(tx, user),
      responseBytes,
      secret: settings.secret,
      clock,
      log,
    }),
  )
  const users = keep(
    await openUsers({
      sql,
      cluster,
      limiter: { count: (group, key, factor) => limiter.count(group, key, factor) },
      syncPublicUser: records.platformRecordWriter(publicUsersTable),
      config: () => config.auth,
      mode: config.mode,
      dataFolder: settings.dataFolder,
      secret: settings.secret,
      responseBytes,
      publicUrl: () => settings.publicUrl ?? (config.mode === 'development' ? server.url : null),
      onRevoking: push.forget,
      clock,
      log,
    }),
  )
  const storage = keep(
    createStorage({
      store,
      blobs,
      images,
      buckets: () => config.buckets,
      ruleEvaluator,
      secret: settings.secret,
      responseBytes,
      keyPermits: (name, scope) => keyPermits(config.serviceKeys, name, scope, clock),
      reloadUser: users.reloadUser,
      refreshClaims: users.refreshClaims,
      publicUrl: () => settings.publicUrl,
      clock,
      log,
    }),
  )
  const { authenticate, refreshClaims } = users
  const sockets = createSockets({
    clock,
    log,
    authenticate: async (token) => refreshClaims(await authenticate(token)),
    renew: refreshClaims,
  })
  users.onRevoked((who) => sockets.endUser(who))
  users.onChanged((userId) => sockets.refreshUser(userId))
  const subscriptions = keep(
    createSubscriptions({
      feed: records.feed,
      resolve: records.resolve,
      namespaces: () => config.namespaces,
      broadcasts: () => config.broadcasts,
      cluster,
      sockets,
      publish: (topic, text) => server.publish(topic, text),
      secret: settings.secret,
      log,
    }),
  )
  registerSocketMetrics(metrics, sockets)
  const rooms = keep(
    createRooms({
      sql,
      cluster: settings.redisUrl === null ? null : cluster,
      namespaces: () => config.rooms,
      ruleEvaluator,
      mode: () => config.mode,
      sockets,
      publish: (topic, text) => server.publish(topic, text),
      db: createRoomDatabase(records.endpoints, createUuid7(clock)),
      push: push.room,
      responseBytes,
      secret: settings.secret,
      clock,
      // With a manual clock in tests, timers of rooms follow that clock.
      elapsedMs: clock === systemClock ? () => performance.now() : () => clock.now(),
      log,
    }),
  )
  const vectors = openVectors({ dataFolder: settings.dataFolder, log })
  opening.defer(() => vectors.close())
  const vector = keep(createVectors({ sql, vectors, limits, log }))
  const kv = keep(createKv({ sql, namespaces: () => config.kv, secret: settings.secret, responseBytes, clock }))
  const sqlDatabases = keep(openSqlDatabases(await createSandboxes({ ...settings, circuit: sql.circuit, log })))
  const analytics = keep(
    await openAnalytics({
      sql,
      config: () => config.analytics,
      pathOf: (name) => paths.get(name) ?? null,
      secret: settings.secret,
      responseBytes,
      clock,
      log,
    }),
  )
  const system = keep(
    createSystem({
      config: () => config,
      clock,
      version,
      async findFaults() {
        const [sqlFault, blobsFault] = await Promise.all([sql.findFault(), blobs.findFault()])
        return { sql: sqlFault, blobs: blobsFault, cluster: cluster.findFault() }
      },
      metrics: () => metrics.text(),
      openApi: (tables) => buildOpenApi({ endpoints, sockets: socketEndpoints, version, tables }),
      docsPage,
      docsPageHeaders,
      url: () => settings.publicUrl ?? server.url,
      needsSetup: users.needsSetup,
      pauseWrites: sql.pauseWrites,
      leases: storage.leases,
    }),
  )
  const features: readonly Feature[] = [
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
  ]
  for (const feature of features) await feature.configure?.(config)
  for (const feature of features) feature.metrics?.(metrics)
  const endpoints = features.flatMap((feature) => feature.endpoints)
  const socketEndpoints = features.flatMap((feature) => feature.socketEndpoints ?? [])
  const paths: ReadonlyMap<string, string> = new Map([
    ...endpoints.map(({ name, paths: [path = ''] }) => [name, path] as const),
    ...socketEndpoints.map(({ name, path }) => [name, path] as const),
  ])

  const served = (): Served => ({
    endpoints,
    socketEndpoints,
    parts: {
      log,
      metrics,
      limiter,
      serviceKeys: createServiceKeys(config.serviceKeys, clock),
      authenticate: users.authenticate,
      cors: createCors({ mode: config.mode, origins: config.cors.origins }),
      trustProxy: settings.trustProxy,
      sockets,
      onResponse: analytics.listenerOf,
    },
  })
  const bodyBytesMax = listenerBodyBytes(config.buckets)
  const { host, port } = settings
  const server = await openServer({ host, port, bodyBytesMax, ...served() })

  const jobs = openJobs(
    [
      { name: 'sql.checkpointIdle', schedule: every(walQuietCheckMs), run: sql.checkpointIdle, perNode: true },
      ...features.flatMap((feature) => feature.jobs ?? []).map((job) => ({ ...job, schedule: every(job.intervalMs) })),
    ],
    // The embedded engine has a single node, even if it shares a Redis with others.
    { leases: settings.databaseUrl === null ? null : cluster, holder: createUuid7(clock)(), clock, log },
  )
  registerJobMetrics(metrics, jobs)
  const drain = (stage: DrainStage): Promise<unknown> =>
    Promise.all(features.map(async (feature) => feature.drain?.stage === stage && feature.drain.run()))
  const opened = opening.move()

  return {
    url: server.url,
    port: server.port,
    endpoints,
    issueSetupToken: users.issueSetupToken,
    async reload(next) {
      await checkVectors(sql, next.vector)
      await schema.migrate(sql, next.storedNamespaces, { accept: false })
      for (const feature of features) await feature.configure?.(next)
      config = next
      warnOfBodyBound(config.buckets, bodyBytesMax, log)
      limiter = createRateLimiter(cluster, config.rateLimits)
      sql.prepareAgain()
      server.replace(served())
      for (const feature of features) await feature.reconfigured?.()
    },
    tidy: jobs.runAll,
    async close() {
      try {
        await closeInTime(
          [
            { name: 'jobs and rooms', byMs: closeRoomsMs, run: () => Promise.all([jobs.close(), drain('first')]) },
            { name: 'requests', byMs: closeRequestsMs, run: () => Promise.all([server.drain(), drain('requests')]) },
            { name: 'change feeds', byMs: closeRequestsMs, run: () => drain('last') },
            { name: 'sockets', byMs: closeRequestsMs, run: () => sockets.stop() },
            { name: 'engines', byMs: closeMs, run: () => opened.disposeAsync() },
          ],
          { clock: systemClock, log },
        )
      } finally {
        metrics.close()
        log.flush()
      }
    },
  }
}
