/** What all parts of the app share: settings, clock, log, metrics and the configuration in force. */
import { type Clock, systemClock } from '../base/clock.ts'
import { AdmissionControl } from '../base/concurrency/admission-control.ts'
import type { HashCost } from '../base/crypto/argon2.ts'
import { createLog, type Log } from '../base/log.ts'
import { RecentLog } from '../base/recent-log.ts'
import type { Config, Settings } from '../config/config.ts'
import { createMetrics, type Metrics } from '../http/metrics.ts'
import { recentLogBytesMax } from '../limits/jobs.ts'
import { passwordCost } from '../limits/users.ts'
import type { Substitutes } from './substitutes.ts'

export interface AppOptions {
  readonly config: Config
  readonly settings: Settings
  readonly clock?: Clock
  readonly log?: Log
  /** The lines that `log` keeps; none if absent. */
  readonly recentLog?: RecentLog
  /** The cost of new password hashes, by default that of a server in use. Tests hash at a lower one. */
  readonly passwordCost?: HashCost
  /** The last owner of the dashboard may be deleted, disabled and demoted: only for a command in a shell. */
  readonly mayEndLastOwner?: boolean
  /** In place of what leaves the server; tests give them. */
  readonly substitutes?: Substitutes
}

/** What the databases need. */
export interface DataContext {
  readonly settings: Settings
  readonly clock: Clock
  readonly log: Log
  readonly recentLog: RecentLog
  /** The configuration in force; a reload replaces it. */
  config: Config
}

export interface AppContext extends DataContext {
  readonly metrics: Metrics
  /** Of expensive requests. */
  readonly admission: AdmissionControl
  readonly passwordCost: HashCost
  readonly mayEndLastOwner: boolean
  readonly substitutes: Substitutes
}

export const createRecentLog = (): RecentLog => new RecentLog(recentLogBytesMax)

export function createDataContext(options: AppOptions): DataContext {
  const { config, settings, clock = systemClock, recentLog = createRecentLog() } = options
  const format = config.mode === 'development' ? 'pretty' : 'json'
  const log = options.log ?? createLog({ level: settings.logLevel, format, clock, recent: recentLog })
  return { config, settings, clock, log, recentLog }
}

export const createContext = (options: AppOptions): AppContext => ({
  ...createDataContext(options),
  metrics: createMetrics(),
  admission: options.substitutes?.admission ?? new AdmissionControl(),
  passwordCost: options.passwordCost ?? passwordCost,
  mayEndLastOwner: options.mayEndLastOwner ?? false,
  substitutes: options.substitutes ?? {},
})
