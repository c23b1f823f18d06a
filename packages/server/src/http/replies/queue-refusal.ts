/** What a fair queue refuses, as clients see it. */
import { QueueFullError, QueueTimeoutError } from '../../base/concurrency/fair-queue.ts'
import { rateLimited, unavailable } from '../../errors.ts'

/**
 * 429 where the caller has too much waiting, and 503 where too much waits in all or for too long; other errors as they
 * are. `what` is queued, in the plural.
 */
export function queueRefusal(error: unknown, what: string, refuse = unavailable): unknown {
  if (error instanceof QueueFullError && error.bound === 'caller')
    return rateLimited(1, `Too many ${what} of yours are waiting`)
  return error instanceof QueueFullError || error instanceof QueueTimeoutError ? refuse() : error
}
