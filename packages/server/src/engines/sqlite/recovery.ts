/**
 * Recovery of a database whose log could not be synced. After a failed sync the system may have dropped dirty pages and
 * report success from then on, so nothing may be acknowledged on top of them. Recovery reads the log back, verifies
 * every frame, checkpoints it with syncs of its own, and starts an empty log; then writes resume.
 */
import { recoveryRetryMaxMs, recoveryRetryMinMs } from '../../limits/sqlite.ts'

export interface Recovery {
  /** Starts attempts with exponential backoff, until one succeeds or `stop` is called. */
  start(): void
  stop(): void
}

export interface RecoveryDeps {
  /** One attempt; rejects with the reason of its failure. */
  readonly attempt: () => Promise<void>
  readonly onFailure: (error: unknown) => void
}

export function createRecovery({ attempt, onFailure }: RecoveryDeps): Recovery {
  let timer: ReturnType<typeof setTimeout> | null = null
  let isRunning = false
  let isStopped = false

  function plan(pauseMs: number): void {
    timer = setTimeout(() => {
      attempt().then(
        () => {
          isRunning = false
        },
        (error: unknown) => {
          onFailure(error)
          if (!isStopped) plan(Math.min(pauseMs * 2, recoveryRetryMaxMs))
        },
      )
    }, pauseMs)
    timer.unref()
  }

  return {
    start() {
      if (isRunning || isStopped) return
      isRunning = true
      plan(recoveryRetryMinMs)
    },
    stop() {
      isStopped = true
      if (timer) clearTimeout(timer)
    },
  }
}
