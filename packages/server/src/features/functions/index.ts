/** Functions: the application's server code. Wires the code in force to what invokes it. */
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Config, Settings } from '../../config/config.ts'
import { ConfigError } from '../../config/issues.ts'
import type { Counters } from '../../engines/cluster/cluster.ts'
import type { BoundedFetch } from '../../engines/fetch/bounded-fetch.ts'
import type { FunctionHosts } from '../../engines/hosts/hosts.ts'
import type { Mails } from '../../engines/mail/mail.ts'
import type { Sql } from '../../engines/sql/sql.ts'
import type { RunInternally } from '../../http/internal-request.ts'
import { secretsCachedMs } from '../../limits/functions.ts'
import type { AuthHooks } from '../auth-hooks.ts'
import type { BeforeHooks } from '../before-hooks.ts'
import type { BulkJobs, BulkWork } from '../bulk-jobs.ts'
import type { Feature } from '../feature.ts'
import { Background } from './background.ts'
import { FunctionCode } from './code.ts'
import type { ChangeLogs } from './dispatch/change-logs.ts'
import { createFunctionEndpoints } from './endpoints.ts'
import { createFunctionList } from './function-list.ts'
import { createAuthHooks } from './hooks/auth-hooks.ts'
import { createBeforeHooks } from './hooks/before-hooks.ts'
import { createHostsEndpoint } from './host-list.ts'
import { createInvoker, type Invoker } from './invoke/invoker.ts'
import { createBulkJobs, createRunBulkJob } from './jobs/bulk-jobs.ts'
import { declaredJobs } from './jobs/declared-jobs.ts'
import { createEnqueueEndpoint } from './jobs/enqueue-endpoint.ts'
import { createJobEndpoints } from './jobs/job-endpoints.ts'
import { registerJobMetrics } from './jobs/job-metrics.ts'
import { createRunJob } from './jobs/run-job.ts'
import { createLogEndpoint } from './logs/endpoint.ts'
import { RecentLines } from './logs/recent-lines.ts'
import { createMailEndpoint } from './mail/endpoints.ts'
import { createRunPlatformJob } from './platform-jobs.ts'
import { createSecretEndpoints } from './secrets/endpoints.ts'
import { createSecretStore } from './secrets/secret-store.ts'

export interface FunctionsDeps {
  readonly hosts: FunctionHosts
  readonly mails: Mails
  /** Makes the requests of webhooks in tests; null in use. */
  readonly webhookFetch: BoundedFetch | null
  readonly sql: Sql
  readonly logs: ChangeLogs
  /** Seals cursors. */
  readonly secret: string
  readonly settings: Pick<Settings, 'projectFolder' | 'environment'>
  readonly config: () => Config
  readonly counters: Counters
  readonly run: RunInternally
  /** Runs the pages of bulk jobs; null where there are none. */
  readonly bulkWork: BulkWork | null
  readonly url: () => string
  readonly clock: Clock
  readonly log: Log
}

export interface Functions extends Feature {
  /** Loads the current files. Throws `ConfigError`; the previous code stays in force. */
  reload(): Promise<void>
  readonly code: FunctionCode
  readonly invoker: Invoker
  /** The functions that run before writes. */
  readonly hooks: BeforeHooks
  /** The functions that accounts call. */
  readonly authHooks: () => AuthHooks
  readonly background: Background
  /** Jobs that change many records. */
  readonly bulkJobs: BulkJobs
}

/** Serves no function before `configure`. */
export function createFunctions(deps: FunctionsDeps): Functions {
  const { hosts, sql, logs, secret, settings, config, counters, run, url, clock, log } = deps
  const { projectFolder, environment } = settings
  const secrets = createSecretStore({ sql, secret, environment, clock })
  const code = new FunctionCode({ hosts, projectFolder, readSecrets: secrets.read, log })
  const lines = new RecentLines()
  const locationOf = (name: string) => code.current.definitions.find((one) => one.name === name)?.location ?? null
  const invoker = createInvoker({ hosts, run, secrets: () => code.current.secrets, locationOf, lines, clock, log })
  const hooks = createBeforeHooks({ declared: () => code.current.hooks, invoker, clock, log })
  const runJob = createRunJob({ invoker, definitions: () => code.current.definitions })
  const background: Background = new Background({
    sql,
    logs,
    run: createRunPlatformJob({
      runJob,
      invoker,
      code: () => code.current,
      config,
      mails: deps.mails,
      runBulkJob: (job, signal, closing) => runBulk(job, signal, closing),
      pause: (name) => background.pause(name),
      clock,
      webhookFetch: deps.webhookFetch,
    }),
    clock,
    log,
  })
  const runBulk = createRunBulkJob(background, deps.bulkWork)
  const bulkJobs = createBulkJobs({ background, work: deps.bulkWork, clock })
  /** Takes what the code in force declares into use. */
  const configureBackground = (): Promise<void> =>
    background.configure(declaredJobs(code.current.definitions, config()), config().namespaces)
  let isStarted = false

  return {
    name: 'functions',
    code,
    invoker,
    hooks,
    authHooks: createAuthHooks({ definitions: () => code.current.definitions, invoker }),
    metrics(metrics) {
      metrics.histogram({
        name: 'functions_before_seconds',
        help: 'Time by which functions have delayed writes, by table in seconds.',
        label: 'table',
        read: () => hooks.times.durations,
      })
      metrics.histogram({
        name: 'functions_duration_seconds',
        help: 'Time from a call of a function to its result, by function in seconds; not of functions before writes.',
        label: 'function',
        read: () => invoker.durations,
      })
      registerJobMetrics(metrics, background)
    },
    background,
    bulkJobs,
    endpoints: [
      ...createFunctionEndpoints({ served: () => code.current.served, invoker, counters, url }),
      createLogEndpoint({ lines, secret, projectFolder }),
      createHostsEndpoint({ hosts, clock }),
      createFunctionList({ definitions: () => code.current.definitions, invoker, projectFolder }),
      createEnqueueEndpoint({ background, clock }),
      ...createJobEndpoints({ background, bulkJobs, secret }),
      createMailEndpoint({ background, clock }),
      ...createSecretEndpoints({ store: secrets, onChanged: () => code.refreshSecrets() }),
    ],
    /** In development a server starts with code that does not load, to be fixed while it runs. */
    async configure(next) {
      const isFirst = !isStarted
      isStarted = true
      try {
        await code.load(next)
      } catch (error) {
        if (!isFirst || next.mode !== 'development' || !(error instanceof ConfigError)) throw error
        log.error('functions.load_failed', { message: error.message })
      }
      // Before the first write. A reload does it once its configuration is in force.
      if (isFirst) await configureBackground()
    },
    reconfigured: configureBackground,
    started: () => background.start(),
    finishDue: () => background.finishDue(),
    nextDueMs: () => background.nextDueMs(),
    async reload() {
      await code.load(config())
      await configureBackground()
    },
    jobs: [
      ...background.housekeeping,
      // Another node may have changed one.
      { name: 'functions.secrets', intervalMs: secretsCachedMs, perNode: true, run: () => code.refreshSecrets() },
    ],
    drain: { stage: 'first', run: () => background.stop() },
    close: () => hosts.close(),
  }
}
