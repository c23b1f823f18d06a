/**
 * Graceful shutdown on signals: the first signal shuts down gracefully, the second exits at once. A killed launcher
 * counts as a signal.
 */
import type { Clock } from '../base/clock.ts'

/** `disconnect`: the IPC channel to the launcher closed, so the launcher was killed. */
export type StopEvent = 'SIGINT' | 'SIGTERM' | 'SIGQUIT' | 'SIGHUP' | 'disconnect'

/** The part of a process that is used; tests provide their own. */
export interface SignalSource {
  on(event: StopEvent, listener: () => void): unknown
  exit(code: number): void
}

/**
 * One Ctrl-C arrives several times: from the terminal, and from each launcher that forwards signals. Signals within
 * this time count as one.
 */
const repeatGraceMs = 500

const exitCodes: Readonly<Record<StopEvent, number>> = {
  SIGINT: 130,
  SIGTERM: 143,
  SIGQUIT: 131,
  SIGHUP: 129,
  disconnect: 143,
}
const stopEvents = Object.keys(exitCodes) as StopEvent[]

/**
 * Resolves with the exit code after a signal and `close`: 0, or 1 if it failed, which is passed to `onFailure`.
 */
export function waitForShutdown(options: {
  readonly process: SignalSource
  /** Whether SIGHUP shuts down (the default); otherwise it is handled elsewhere. */
  readonly endsOnHangup?: boolean
  readonly clock: Clock
  readonly close: () => Promise<void>
  readonly onFailure: (error: unknown) => void
}): Promise<number> {
  const { process, endsOnHangup = true, clock, close, onFailure } = options
  return new Promise((resolve) => {
    let firstMs: number | null = null
    const fail = (error: unknown): number => {
      onFailure(error)
      return 1
    }
    for (const event of stopEvents.filter((one) => endsOnHangup || one !== 'SIGHUP'))
      process.on(event, () => {
        if (firstMs === null) {
          firstMs = clock.now()
          resolve(close().then(() => 0, fail))
        } else if (Math.abs(clock.now() - firstMs) >= repeatGraceMs) process.exit(exitCodes[event])
      })
  })
}
