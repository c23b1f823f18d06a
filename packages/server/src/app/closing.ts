/** Shutdown within a deadline: steps that hang are abandoned, and the others still run. */
import { type Clock, waitOn } from '../base/clock.ts'
import type { Log } from '../base/log.ts'

export interface ClosingStep {
  readonly name: string
  /** Deadline of the step in milliseconds after the start of the shutdown. */
  readonly byMs: number
  /** The result is awaited. */
  run(): unknown
}

/**
 * Runs the steps in order. A failing step does not prevent the others; the first failure is thrown at the end. An
 * abandoned step is logged and continues in the background: nothing it would still do has been acknowledged.
 */
export async function closeInTime(
  steps: readonly ClosingStep[],
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): Promise<void> {
  const failures: unknown[] = []
  let lateMs = 0
  const startMs = clock.now()
  for (const { name, byMs, run } of steps) {
    // If the clock is set during the shutdown, a step takes at most its own deadline.
    const passedMs = Math.min(Math.max(clock.now() - startMs, lateMs), byMs)
    const done = (async () => run())().then(
      () => true,
      (error) => {
        failures.push(error)
        return true
      },
    )
    const isDone = await Promise.race([done, waitOn(clock, byMs - passedMs).then(() => false)])
    if (isDone) continue
    lateMs = byMs
    log.warn('close.abandoned', { step: name, afterMs: byMs })
  }
  if (failures.length > 0) throw failures[0]
}
