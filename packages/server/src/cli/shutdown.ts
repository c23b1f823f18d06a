/** What stops a server: a first signal in peace, a second at once; a launcher that was killed counts as a signal. */
import type { Clock } from '../base/clock.ts'

/** `disconnect`: the launcher, which holds a channel to its server, has ended without a word. */
export type StopEvent = 'SIGINT' | 'SIGTERM' | 'SIGQUIT' | 'SIGHUP' | 'disconnect'

/** What is needed of a process; tests give their own. */
export interface SignalSource {
  on(event: StopEvent, listener: () => void): unknown
  exit(code: number): void
}

/**
 * One Ctrl-C reaches the server several times: from the terminal, and again from each launcher that passes signals on.
 * Nobody presses twice within this time and means it.
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
 * Resolves with the exit code once a signal came and `close` is done: 0, or 1 when it failed, which `onFailure` is
 * told.
 */
export function waitForShutdown(options: {
  readonly process: SignalSource
  /** Whether SIGHUP means that the terminal is gone (the default); otherwise it means something else to the server. */
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
