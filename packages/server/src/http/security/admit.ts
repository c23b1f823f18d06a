/** Admission of expensive requests (`base/concurrency/admission-control`), with the refusals that clients see. */
import { type Caller, callerKey } from '../../access/caller.ts'
import type { AdmissionControl } from '../../base/concurrency/admission-control.ts'
import { QueueFullError, QueueTimeoutError } from '../../base/concurrency/fair-queue.ts'
import { rateLimited, unavailable } from '../../errors.ts'
import { retryAfterSecondsMax } from '../../limits/api.ts'

function refusalOf(error: unknown): unknown {
  if (error instanceof QueueFullError && error.bound === 'caller')
    return rateLimited(1, 'Too many expensive requests of yours are waiting')
  if (!(error instanceof QueueFullError || error instanceof QueueTimeoutError)) return error
  const seconds = 1 + Math.floor(Math.random() * retryAfterSecondsMax)
  return unavailable(seconds, 'The server is overloaded and refuses expensive requests')
}

/**
 * Returns a promise to await before an expensive request begins; undefined where it may at once. Throws or rejects with
 * 429 where too many of the caller wait, and 503 under overload; nothing has been read or changed by then.
 */
export function admit(
  admission: AdmissionControl,
  request: { readonly caller: Caller; readonly signal: AbortSignal },
): Promise<void> | undefined {
  try {
    return admission.admit(callerKey(request.caller), request.signal)?.catch((error: unknown) => {
      throw refusalOf(error)
    })
  } catch (error) {
    throw refusalOf(error)
  }
}
