/** The shape of a feature, as the composition root (`app`) sees it. */
import type { Config } from '../config/config.ts'
import type { Endpoint, SocketEndpoint } from '../http/endpoint.ts'
import type { Metrics } from '../http/metrics.ts'

/** Work that a feature repeats while the server runs; at any time one node does it, unless it is `perNode`. */
export interface HousekeepingJob {
  /** In the log, in metrics and in the job's lease: `storage.sweep`. */
  readonly name: string
  readonly intervalMs: number
  /** Whether every node does it for itself. */
  readonly perNode?: boolean
  /** One run. The signal is aborted when the run should end: the server closes, or another node has the job. */
  run(signal: AbortSignal): Promise<void>
}

/**
 * When a feature drains while the server closes: `first` beside the jobs, with requests and sockets still served;
 * `requests` beside the requests under way; `last` after them and before the sockets are closed.
 */
export type DrainStage = 'first' | 'requests' | 'last'

export interface Feature {
  readonly name: string
  readonly endpoints: readonly Endpoint[]
  readonly socketEndpoints?: readonly SocketEndpoint[]
  /** Endpoints of the dashboard alone; not part of the API and its description. */
  readonly dashboardEndpoints?: readonly Endpoint[]
  readonly jobs?: readonly HousekeepingJob[]
  /** Registers the feature's metrics. Called once. */
  readonly metrics?: (metrics: Metrics) => void
  /**
   * Prepares for a configuration, at the start and before another one is served. Rejects where the stored data does not
   * fit it: the start fails, or the previous configuration stays in force.
   */
  readonly configure?: (next: Config) => Promise<void>
  /** Begins work of its own, once requests are served. */
  readonly started?: () => Promise<void>
  /** Called once another configuration is in force: what was derived from the previous one is dropped. */
  readonly reconfigured?: () => void | Promise<void>
  /** Finishes the work that is due by the server's clock; later work may remain. For tests that move the clock. */
  readonly finishDue?: () => Promise<void>
  /** When the next work becomes due that `finishDue` would do, in milliseconds since 1970; null if none is known. */
  readonly nextDueMs?: () => Promise<number | null>
  /** Finishes work that must not be lost, within a bounded time. */
  readonly drain?: { readonly stage: DrainStage; run(): Promise<void> }
  /** Releases everything the feature has opened. Called last, with no request under way. */
  readonly close?: () => Promise<void>
}
