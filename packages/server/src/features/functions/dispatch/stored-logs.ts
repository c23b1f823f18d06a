/**
 * Takes up the logs whose positions an earlier process has stored. After a crash there may be as many as instances were
 * written in its last seconds, and each opens a database: they are read in the background, a few at a time, so that a
 * start takes as long as without them.
 */
import { type Clock, waitOn } from '../../../base/clock.ts'
import { createSemaphore } from '../../../base/concurrency/semaphore.ts'
import type { Log } from '../../../base/log.ts'
import type { DatabaseAddress } from '../../../engines/sql/sql.ts'
import { dispatcherPollMs, dispatcherPositionsPage, dispatchersTakenUpMax } from '../../../limits/function-jobs.ts'
import { keyOfLog } from './change-logs.ts'
import type { Positions } from './positions.ts'

export interface StoredLogsDeps {
  readonly positions: Pick<Positions, 'page'>
  readonly clock: Clock
  readonly log: Log
}

export class StoredLogs {
  readonly #deps: StoredLogsDeps
  readonly #takeUp: (address: DatabaseAddress, version: number) => Promise<void>
  #stopping = new AbortController()
  #running: Promise<void> | null = null
  /** When the oldest of the logs that are taken up now was dispatched. */
  #oldestMs: number | null = null

  /** `takeUp` settles when a log has been read to its end, or has failed. */
  constructor(deps: StoredLogsDeps, takeUp: (address: DatabaseAddress, version: number) => Promise<void>) {
    this.#deps = deps
    this.#takeUp = takeUp
  }

  /** Begins with all logs that are stored now. */
  start(): void {
    this.#stopping = new AbortController()
    this.#run(this.#stopping.signal)
  }

  /** Begins with no further log. */
  stop(): void {
    this.#stopping.abort()
  }

  /** Resolves when all have been taken up, or when that has failed and will be repeated. */
  async finished(): Promise<void> {
    await this.#running
  }

  lagMs(nowMs: number): number {
    return this.#oldestMs === null ? 0 : Math.max(0, nowMs - this.#oldestMs)
  }

  #run(signal: AbortSignal): void {
    this.#running = this.#takeUpAll(signal).catch((error) => {
      if (signal.aborted) return
      this.#deps.log.warn('functions.dispatch_failed', { log: 'stored positions', error })
      void waitOn(this.#deps.clock, dispatcherPollMs).then(() => signal.aborted || this.#run(signal))
    })
  }

  async #takeUpAll(signal: AbortSignal): Promise<void> {
    const slots = createSemaphore({ running: dispatchersTakenUpMax, waiting: dispatcherPositionsPage })
    for (let after: string | null = ''; after !== null && !signal.aborted; ) {
      const page = await this.#deps.positions.page(after, dispatcherPositionsPage)
      this.#oldestMs = Math.min(...page.map(({ position }) => position.atMs))
      await Promise.all(
        page.map(({ namespace, instanceId, version }) =>
          slots.run(async () => {
            if (!signal.aborted) await this.#takeUp({ namespace, instanceId }, version)
          }),
        ),
      )
      const last = page.at(-1)
      after = last && page.length === dispatcherPositionsPage ? keyOfLog(last) : null
    }
    this.#oldestMs = null
  }
}
