/**
 * Attempts at providers: so many at once, tried again after a pause when the moment was wrong. Owns the pauses and the
 * bound; what an attempt is and what becomes of its outcome is the callers' matter. Lives in memory.
 */
import { type Clock, waitOn } from '../../base/clock.ts'
import { createSemaphore } from '../../base/concurrency/semaphore.ts'
import { unavailable } from '../../errors.ts'
import {
  pushRetriesMax,
  pushRetryAfterMaxMs,
  pushRetryPauseMs,
  pushSendsAtOnceMax,
  pushSendsWaitingMax,
} from '../../limits/push.ts'
import { type Attempt, failed, type Later, type Outcome } from './provider.ts'

export interface Delivery {
  /**
   * Makes the attempt, and again up to three times. Throws 503 when too many wait for their turn, with nothing
   * attempted.
   */
  deliver<T>(attempt: Attempt<T>): Promise<T | Outcome>
  /** Ends every pause and makes no other: what waits is tried once more. */
  skipPauses(): void
  readonly retries: number
}

export function createDelivery({ clock }: { readonly clock: Clock }): Delivery {
  const gate = createSemaphore({ running: pushSendsAtOnceMax, waiting: pushSendsWaitingMax })
  const pausesSkipped = Promise.withResolvers<void>()
  let skipsPauses = false
  let retries = 0

  async function attemptOnce<T>(attempt: Attempt<T>): Promise<T | Later> {
    const entered = gate.run(attempt)
    if (!entered) throw unavailable()
    return entered
  }

  return {
    async deliver(attempt) {
      for (let round = 0; ; round++) {
        const isLast = round === pushRetriesMax || skipsPauses
        const answer = await attemptOnce(attempt)
        if (!isLater(answer)) return answer
        const pauseMs = answer.afterMs ?? pauseOf(round)
        if (isLast || pauseMs > pushRetryAfterMaxMs) return failed(answer.error)
        // Others use the place meanwhile.
        await Promise.race([waitOn(clock, pauseMs), pausesSkipped.promise])
        retries += 1
      }
    },
    skipPauses() {
      skipsPauses = true
      pausesSkipped.resolve()
    },
    get retries() {
      return retries
    },
  }
}

const isLater = (answer: unknown): answer is Later => (answer as { status?: unknown }).status === 'later'

/** Twice as long each time, and never the same for all who were turned away at once. */
const pauseOf = (round: number): number => Math.round(pushRetryPauseMs * 2 ** round * (1 + Math.random() / 4))
