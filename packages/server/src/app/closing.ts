/** Closing within one deadline, whatever hangs: what is not done in time is abandoned, and the rest goes on. */
import { type Clock, waitOn } from '../base/clock.ts'
import type { Log } from '../base/log.ts'

export interface ClosingStep {
  readonly name: string
  /** Milliseconds after the beginning of closing by which the step is over or abandoned. */
  readonly byMs: number
  /** What it gives is awaited. */
  run(): unknown
}

/**
 * Runs the steps in their order. A step that fails does not keep the others from running; the first failure is thrown
 * at the end. A step that is abandoned is logged and goes on beside the others: nothing it would still do has been
 * acknowledged.
 */
export async function closeInTime(
  steps: readonly ClosingStep[],
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): Promise<void> {
  const failures: unknown[] = []
  let lateMs = 0
  const startMs = clock.now()
  for (const { name, byMs, run } of steps) {
    // A clock that is set while the server closes can at worst make a step as long as its own deadline.
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
