/** Admission of expensive requests (`base/concurrency/admission-control`), with the refusals that clients see. */
import { type Caller, callerKey } from '../../access/caller.ts'
import type { AdmissionControl } from '../../base/concurrency/admission-control.ts'
import { unavailable } from '../../errors.ts'
import { retryAfterSecondsMax } from '../../limits/api.ts'
import { queueRefusal } from '../replies/queue-refusal.ts'

const refusalOf = (error: unknown): unknown =>
  queueRefusal(error, 'expensive requests', () => {
    const seconds = 1 + Math.floor(Math.random() * retryAfterSecondsMax)
    return unavailable(seconds, 'The server is overloaded and refuses expensive requests')
  })

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
