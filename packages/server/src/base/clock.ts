/** The clock as a dependency, so that tests control time. */

export interface Clock {
  /** Milliseconds since 1970 in UTC; may jump backwards when the machine's clock is set. */
  now(): number
  /** Resolves after a delay on this clock; absent where system timers are used. */
  wait?(ms: number): Promise<void>
}

/** Resolves after a delay on the clock. Does not keep the process alive. */
export const waitOn = (clock: Clock, ms: number): Promise<void> =>
  clock.wait?.(ms) ?? new Promise((resolve) => void setTimeout(resolve, ms).unref())

/** Aborts with a `TimeoutError` after a time on the clock. */
export function timeoutOn(clock: Clock, ms: number): AbortSignal {
  if (!clock.wait) return AbortSignal.timeout(ms)
  const controller = new AbortController()
  const late = new DOMException('The operation timed out', 'TimeoutError')
  void clock.wait(ms).then(() => controller.abort(late))
  return controller.signal
}

export const systemClock: Clock = { now: () => Date.now() }

export interface ManualClock extends Clock {
  set(ms: number): void
  advance(ms: number): void
  wait(ms: number): Promise<void>
  /** Resolves once there is a pending wait, with the milliseconds until the earliest one ends. */
  waited(): Promise<number>
}

/** A clock that moves only by `advance`. */
export function manualClock(startMs = Date.UTC(2026, 0, 31, 12)): ManualClock {
  let current = startMs
  const waits = new Set<{ readonly dueMs: number; readonly resolve: () => void }>()
  const watchers = new Set<() => void>()
  const wakeUp = (): void => {
    for (const wait of waits) {
      if (wait.dueMs > current) continue
      waits.delete(wait)
      wait.resolve()
    }
  }
  return {
    now: () => current,
    set(ms) {
      current = ms
      wakeUp()
    },
    advance(ms) {
      current += ms
      wakeUp()
    },
    wait: (ms) =>
      new Promise((resolve) => {
        waits.add({ dueMs: current + ms, resolve })
        for (const watcher of watchers) watcher()
      }),
    async waited() {
      if (waits.size === 0) await new Promise<void>((resolve) => watchers.add(resolve))
      watchers.clear()
      return Math.min(...[...waits].map(({ dueMs }) => dueMs)) - current
    },
  }
}
