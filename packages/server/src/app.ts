/**
 * The composition root: configuration to engines to features to listener. The only file that knows every feature; it
 * hands each the functions it needs, and features never meet otherwise.
 */

import { createJudge } from './access/judge.ts'
import { createServiceKeys, keyPermits } from './access/service-keys.ts'
import { listenerBodyBytes, warnOfBodyBound } from './app/body-bound.ts'
import { closeInTime } from './app/closing.ts'
import { countAnalytics, countJobs, countPush, countRooms, countSockets } from './app/counts.ts'
import { closing, openEngines, orClose } from './app/engines.ts'
import { every, openJobs } from './app/jobs.ts'
import { type Clock, systemClock } from './base/clock.ts'
import { createUuid7 } from './base/crypto/ids.ts'
import { createLog, type Log } from './base/log.ts'
import type { Config, Settings } from './config/config.ts'
import { publicUsersTable } from './config/sections/auth/public-users.ts'
import { createSandboxes, openSql, openVectors } from './engines/open.ts'
import type { Sql } from './engines/sql/sql.ts'
import { openAnalytics } from './features/analytics/index.ts'
import { createKv } from './features/kv/index.ts'
import { type Push, preparePush } from './features/push/index.ts'
import { createRecords } from './features/records/index.ts'
import { createSchema, type Schema } from './features/records/schema/schema.ts'
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
import { rollUpIntervalMs } from './limits/analytics.ts'
import { closeMs, closeRequestsMs, closeRoomsMs } from './limits/api.ts'
import { housekeepingIntervalMs, walQuietCheckMs } from './limits/sqlite.ts'
import { sweepIntervalMs } from './limits/storage.ts'
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
  /** Every endpoint declaration, for tools that describe or test the surface. */
  readonly endpoints: readonly Endpoint[]
  /**
   * Serves another configuration from the next request on. Throws `SchemaError`, with the old one still served, when
   * its tables do not fit the data.
   */
  reload(config: Config): Promise<void>
  /** Does now what it does by itself every now and then: removes what is past its time. */
  tidy(): Promise<void>
  /** A token for the link by which the first administrator is made; null once there is one. */
  issueSetupToken(): Promise<string | null>
  /**
   * Takes no new work, finishes what runs, and lets go of everything, within 20 seconds: what hangs is abandoned.
   */
  close(): Promise<void>
}

/** Opens the data folder alone, without serving: what `plinth migrate` works on. */
export async function openData(options: AppOptions): Promise<{ sql: Sql; schema: Schema }> {
  const { config, settings, clock = systemClock, log = logOf(options) } = options
  const schema = createSchema({ namespaces: () => config.namespaces, log })
  return { schema, sql: await openSql({ ...settings, prepareInstance: schema.prepareInstance, clock, log }) }
}

const logOf = ({ config, settings, clock = systemClock }: AppOptions): Log =>
  createLog({ level: settings.logLevel, format: config.mode === 'development' ? 'pretty' : 'json', clock })

/**
 * Starts serving. Throws `SchemaError` when the data does not fit the configuration, `EngineError` when the data folder
 * is taken, and what the runtime throws when the port is.
 */
export async function openApp(options: AppOptions): Promise<App> {
  const { settings, clock = systemClock, log = logOf(options) } = options
  let config = options.config
  const schema = createSchema({ namespaces: () => config.namespaces, log })
  const engines = await openEngines(options, schema, clock, log)
  const { sql, cluster, blobs, images, store } = engines
  const metrics = createMetrics()
  const judge = createJudge({ sql, namespaces: () => config.namespaces })
  const responseBytes = (): number => config.limits.responseBytes
  const limits = createResponseLimits(responseBytes)
  const records = createRecords({
    sql,
    judge,
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
  })
  let limiter = createRateLimiter(cluster, config.rateLimits)
  const push: Push = await orClose(engines, () =>
    preparePush({
      sql,
      config: () => config.push,
      holdActive: (tx, user) => users.holdActive(tx, user),
      responseBytes,
      secret: settings.secret,
      clock,
      log,
    }),
  )
  countPush(metrics, push)
  const users = await orClose(engines, () =>
    openUsers({
      sql,
      cluster,
      limiter: { count: (group, key, factor) => limiter.count(group, key, factor) },
      keepPublicUser: records.keepRecord(publicUsersTable),
      config: () => config.auth,
      mode: config.mode,
      dataFolder: settings.dataFolder,
      secret: settings.secret,
      responseBytes,
      publicUrl: () => settings.publicUrl ?? (config.mode === 'development' ? server.url : null),
      onEnding: push.forget,
      clock,
      log,
    }),
  )
  const storage = createStorage({
    store,
    blobs,
    images,
    buckets: () => config.buckets,
    judge,
    secret: settings.secret,
    responseBytes,
    keyPermits: (name, scope) => keyPermits(config.serviceKeys, name, scope, clock),
    asNow: users.asNow,
    renew: users.renew,
    publicUrl: () => settings.publicUrl,
    clock,
    log,
  })
  const { authenticate, renew } = users
  const sockets = createSockets({ clock, log, authenticate: async (token) => renew(await authenticate(token)), renew })
  users.onRevoked((who) => sockets.endUser(who))
  users.onChanged((userId) => sockets.renewUser(userId))
  const subscriptions = createSubscriptions({
    feed: records.feed,
    resolve: records.resolve,
    namespaces: () => config.namespaces,
    broadcasts: () => config.broadcasts,
    cluster,
    sockets,
    publish: (topic, text) => server.publish(topic, text),
    secret: settings.secret,
    log,
  })
  countSockets(metrics, sockets, subscriptions)
  const rooms = createRooms({
    sql,
    cluster: settings.redisUrl === null ? null : cluster,
    namespaces: () => config.rooms,
    judge,
    mode: () => config.mode,
    sockets,
    publish: (topic, text) => server.publish(topic, text),
    db: createRoomDatabase(records.endpoints, createUuid7(clock)),
    push: push.room,
    responseBytes,
    secret: settings.secret,
    clock,
    // A test that moves the clock moves what rooms wait for too.
    elapsedMs: clock === systemClock ? () => performance.now() : () => clock.now(),
    log,
  })
  countRooms(metrics, rooms)
  const vectorCopies = openVectors({ dataFolder: settings.dataFolder, log })
  const vector = createVectors({ sql, vectors: vectorCopies, limits, log })
  const kv = createKv({ sql, namespaces: () => config.kv, secret: settings.secret, responseBytes, clock })
  const sqlDatabases = await orClose(closing([engines, users, vectorCopies]), async () =>
    openSqlDatabases(await createSandboxes({ ...settings, circuit: sql.circuit, log }), config.sql, responseBytes()),
  )
  const analytics = await orClose(closing([engines, users, vectorCopies, sqlDatabases]), () =>
    openAnalytics({
      sql,
      config: () => config.analytics,
      pathOf: (name) => paths.get(name) ?? null,
      secret: settings.secret,
      responseBytes,
      clock,
      log,
    }),
  )
  countAnalytics(metrics, analytics)
  const opened = closing([engines, users, sqlDatabases, { close: () => rooms.stop() }, vectorCopies, analytics])
  await orClose(opened, () => rooms.prepare(config.rooms))
  await orClose(opened, () => kv.prepare(config.kv))
  await orClose(opened, () => vector.prepare(config.vector))
  const system = createSystem({
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
    holdWrites: sql.holdWrites,
    leases: storage.leases,
  })
  const endpoints: readonly Endpoint[] = [
    ...records.endpoints,
    ...subscriptions.endpoints,
    ...rooms.endpoints,
    ...vector.endpoints,
    ...kv.endpoints,
    ...storage.endpoints,
    ...sqlDatabases.endpoints,
    ...users.endpoints,
    ...push.endpoints,
    ...analytics.endpoints,
    ...system.endpoints,
  ]
  const socketEndpoints = [...subscriptions.socketEndpoints, ...rooms.socketEndpoints]
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
      noteOf: analytics.noteOf,
    },
  })
  const bodyBytesMax = listenerBodyBytes(config.buckets)
  const { host, port } = settings
  const server = await orClose(opened, () => openServer({ host, port, bodyBytesMax, ...served() }))

  const jobs = openJobs(
    [
      { name: 'records.trim', schedule: every(housekeepingIntervalMs), run: records.trim },
      { name: 'sql.settleQuiet', schedule: every(walQuietCheckMs), run: sql.settleQuiet, perNode: true },
      { name: 'users.reloadKeys', schedule: every(housekeepingIntervalMs), run: users.reloadKeys, perNode: true },
      { name: 'users.sweep', schedule: every(housekeepingIntervalMs), run: users.sweep },
      { name: 'storage.sweep', schedule: every(sweepIntervalMs), run: storage.sweep },
      { name: 'push.tidy', schedule: every(housekeepingIntervalMs), run: push.tidy },
      { name: 'analytics.rollUp', schedule: every(rollUpIntervalMs), run: analytics.rollUp },
      { name: 'kv.sweep', schedule: every(housekeepingIntervalMs), run: kv.sweep },
    ],
    // The embedded engine has one node, whatever else shares its Redis.
    { leases: settings.databaseUrl === null ? null : cluster, holder: createUuid7(clock)(), clock, log },
  )
  countJobs(metrics, jobs)

  return {
    url: server.url,
    port: server.port,
    endpoints,
    issueSetupToken: users.issueSetupToken,
    async reload(next) {
      await checkVectors(sql, next.vector)
      await schema.migrate(sql, next.storedNamespaces, { accept: false })
      await rooms.prepare(next.rooms)
      await vector.prepare(next.vector)
      await kv.prepare(next.kv)
      await sqlDatabases.replace(next.sql, next.limits.responseBytes)
      config = next
      warnOfBodyBound(config.buckets, bodyBytesMax, log)
      limiter = createRateLimiter(cluster, config.rateLimits)
      sql.prepareAgain()
      records.reset()
      server.replace(served())
      await subscriptions.reset()
      rooms.reset()
    },
    tidy: jobs.runAll,
    async close() {
      try {
        await closeInTime(
          [
            { name: 'jobs and rooms', byMs: closeRoomsMs, run: () => Promise.all([jobs.close(), rooms.drain()]) },
            { name: 'requests', byMs: closeRequestsMs, run: () => Promise.all([server.drain(), push.drain()]) },
            { name: 'change feeds', byMs: closeRequestsMs, run: () => records.feed.close() },
            { name: 'sockets', byMs: closeRequestsMs, run: () => sockets.stop() },
            { name: 'engines', byMs: closeMs, run: () => opened.close() },
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
