/**
 * Delivery attempts: bounded concurrency, and retries with exponential backoff. Callers define an attempt and handle
 * its outcome. State is in memory.
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
import { type Attempt, failed, type Later, type Outcome } from './providers/provider.ts'

export interface Delivery {
  /** Makes the attempt, with up to `pushRetriesMax` retries. Throws 503 without an attempt if too many are queued. */
  deliver<T>(attempt: Attempt<T>): Promise<T | Outcome>
  /** Ends all pauses and makes no others: each waiting message is attempted once more. For shutdown. */
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
        // The slot is free for others during the pause.
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

/** Exponential backoff with jitter, so that messages rejected together are not retried together. */
const pauseOf = (round: number): number => Math.round(pushRetryPauseMs * 2 ** round * (1 + Math.random() / 4))
