/**
 * The composition root: opens engines, features and listener for a configuration, replaces the configuration, and
 * closes them. `app/features` creates the features; here they are a list.
 */

import { closeInTime } from './app/closing.ts'
import { type AppContext, type AppOptions, createContext, createDataContext } from './app/context.ts'
import { type Data, type Engines, migrate, openDatabases, openEngines } from './app/engines.ts'
import { type Features, openFeatures } from './app/features.ts'
import { type Jobs, openJobs } from './app/jobs.ts'
import { Listener } from './app/listener.ts'
import { registerAdmissionMetrics, registerJobMetrics, registerSocketMetrics } from './app/metrics.ts'
import { systemClock } from './base/clock.ts'
import { createUuid7 } from './base/crypto/ids.ts'
import type { Config } from './config/config.ts'
import type { DrainStage } from './features/feature.ts'
import type { Endpoint } from './http/endpoint.ts'
import { createRateLimiter } from './http/security/rate-limit.ts'
import { closeMs, closeRequestsMs, closeRoomsMs } from './limits/api.ts'
import { walQuietCheckMs } from './limits/sqlite.ts'

export type { AppOptions } from './app/context.ts'

/** Opens the databases without serving, for `plinth migrate`. */
export const openData = (options: AppOptions): Promise<Data> => openDatabases(createDataContext(options))

/**
 * Starts the server. Throws `SchemaError` if the data is incompatible with the configuration, `EngineError` if the data
 * folder is locked by another process, and the runtime's error if the port is in use.
 */
export async function openApp(options: AppOptions): Promise<App> {
  const context = createContext(options)
  /** Closed in reverse order, at shutdown or when a later step of the start fails. */
  await using opening = new AsyncDisposableStack()
  const engines = await openEngines(context, opening)
  const listener = new Listener(context)
  const limiter = createRateLimiter(engines.cluster, () => context.config.rateLimits)
  const opened: { jobs: Jobs | null } = { jobs: null }
  const ownLeases = (): readonly string[] => opened.jobs?.ownLeases() ?? []
  const features = await openFeatures({ context, engines, listener, limiter, ownLeases }, opening)
  for (const feature of features.all) await feature.configure?.(context.config)
  const { metrics } = context
  for (const feature of features.all) feature.metrics?.(metrics)
  registerSocketMetrics(metrics, features.sockets)
  registerAdmissionMetrics(metrics, context.admission)
  const { api, sockets, users, analytics, dashboard } = features
  listener.open({
    api,
    sockets,
    limiter,
    authenticate: users.authenticateHeader,
    dashboard: dashboard.access,
    audit: dashboard.audit,
    recorder: dashboard.recorder,
    onKeyUsed: dashboard.noteKeyUse,
    onResponse: analytics.listenerOf,
  })
  const jobs = openAllJobs(context, engines, features)
  opened.jobs = jobs
  registerJobMetrics(metrics, jobs)
  for (const feature of features.all) await feature.started?.()
  return new App({ context, engines, features, listener, jobs, opened: opening.move() })
}

function openAllJobs({ settings, clock, log }: AppContext, { sql, cluster }: Engines, { all }: Features): Jobs {
  return openJobs(
    [
      { name: 'sql.checkpointIdle', intervalMs: walQuietCheckMs, run: sql.checkpointIdle, perNode: true },
      ...all.flatMap((feature) => feature.jobs ?? []),
    ],
    // The embedded engine has a single node, even if it shares a Redis with others.
    { leases: settings.databaseUrl === null ? null : cluster, holder: createUuid7(clock)(), clock, log },
  )
}

interface AppParts {
  readonly context: AppContext
  readonly engines: Engines
  readonly features: Features
  readonly listener: Listener
  readonly jobs: Jobs
  /** Engines and features, to be closed in reverse order. */
  readonly opened: AsyncDisposableStack
}

/** A server that runs. */
export class App {
  readonly #parts: AppParts
  readonly url: string
  readonly port: number
  /** All endpoint declarations, for tools that describe or test the API. */
  readonly endpoints: readonly Endpoint[]
  /** Those below `/dashboard`, for tests. */
  readonly dashboardEndpoints: readonly Endpoint[]

  constructor(parts: AppParts) {
    this.#parts = parts
    this.url = parts.listener.url
    this.port = parts.listener.port
    this.endpoints = parts.features.api.endpoints
    this.dashboardEndpoints = parts.features.api.dashboardEndpoints
  }

  /**
   * Applies another configuration from the next request on. Throws `SchemaError` if its tables are incompatible with
   * the data; the old configuration remains active.
   */
  async reload(next: Config): Promise<void> {
    const { context, engines, features, listener } = this.#parts
    await migrate(engines, next)
    for (const feature of features.all) await feature.configure?.(next)
    context.config = next
    engines.sql.prepareAgain()
    listener.replace()
    for (const feature of features.all) await feature.reconfigured?.()
  }

  /** Loads the code of functions from its current files. Throws `ConfigError`; the old code remains in force. */
  reloadFunctions(): Promise<void> {
    return this.#parts.features.functions.reload()
  }

  /** Absolute paths of the modules of functions in force. */
  get functionFiles(): readonly string[] {
    return this.#parts.features.functions.code.current.files
  }

  /** Waits until no work is due by the server's clock; see `Feature`. */
  async finishDue(): Promise<void> {
    for (const feature of this.#parts.features.all) await feature.finishDue?.()
  }

  /** When the next work becomes due; null if none is known. */
  async nextDueMs(): Promise<number | null> {
    const times = await Promise.all(this.#parts.features.all.map((feature) => feature.nextDueMs?.() ?? null))
    const known = times.filter((time) => time !== null)
    return known.length === 0 ? null : Math.min(...known)
  }

  /** Runs all housekeeping jobs now. */
  tidy(): Promise<void> {
    return this.#parts.jobs.runAll()
  }

  /** A token for the link that creates the first administrator; null once there is one. */
  issueSetupToken(): Promise<string | null> {
    return this.#parts.features.users.issueSetupToken()
  }

  /** The custom claims of a token that is issued to a user now; see `Users`. */
  claimsForToken(...user: Parameters<Features['users']['claimsForToken']>): Promise<Readonly<Record<string, unknown>>> {
    return this.#parts.features.users.claimsForToken(...user)
  }

  /** Shuts down gracefully within 20 seconds; work that hangs is abandoned. */
  async close(): Promise<void> {
    const { context, features, listener, jobs, opened } = this.#parts
    const drain = (stage: DrainStage): Promise<unknown> =>
      Promise.all(features.all.map(async ({ drain }) => drain?.stage === stage && drain.run()))
    try {
      await closeInTime(
        [
          { name: 'jobs and rooms', byMs: closeRoomsMs, run: () => Promise.all([jobs.close(), drain('first')]) },
          { name: 'requests', byMs: closeRequestsMs, run: () => Promise.all([listener.drain(), drain('requests')]) },
          { name: 'change feeds', byMs: closeRequestsMs, run: () => drain('last') },
          { name: 'sockets', byMs: closeRequestsMs, run: () => features.sockets.stop() },
          { name: 'engines', byMs: closeMs, run: () => opened.disposeAsync() },
        ],
        { clock: systemClock, log: context.log },
      )
    } finally {
      context.metrics.close()
      context.log.flush()
    }
  }
}
