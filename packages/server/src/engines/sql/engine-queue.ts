/** A fair queue whose refusals are errors of the engine. */
import {
  createFairQueue,
  type FairQueueBounds,
  QueueFullError,
  QueueTimeoutError,
} from '../../base/concurrency/fair-queue.ts'
import { EngineError } from './error.ts'

export interface EngineQueue {
  /**
   * Runs `work` once a slot is free, round robin over callers. Throws `EngineError` `crowded` where too much of the
   * caller waits, and `busy` where too much waits in all or where it has waited too long.
   */
  enter<T>(caller: string, work: () => Promise<T>): Promise<T>
}

/** `what` is queued, in the plural, for messages. */
export function createEngineQueue(what: string, bounds: FairQueueBounds): EngineQueue {
  const queue = createFairQueue(bounds)
  const refusalOf = (error: unknown): unknown => {
    if (error instanceof QueueTimeoutError) return new EngineError('busy', `Waited too long behind other ${what}`)
    if (!(error instanceof QueueFullError)) return error
    return error.bound === 'caller'
      ? new EngineError('crowded', `Too many ${what} of yours are waiting`)
      : new EngineError('busy', `Too many ${what} are waiting`)
  }
  return {
    async enter(caller, work) {
      try {
        return await queue.enter(caller, null, work)
      } catch (error) {
        throw refusalOf(error)
      }
    },
  }
}
