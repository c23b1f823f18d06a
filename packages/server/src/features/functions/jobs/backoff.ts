/** Pauses between attempts: exponential backoff with full jitter, so that jobs that failed together retry apart. */
import { functionBackoffMaxMs, functionBackoffMs } from '../../../limits/function-jobs.ts'

/** The pause after attempt number `attempt` (from 1), in milliseconds. `random` is from 0 to below 1. */
export function backoffMs(attempt: number, random: () => number): number {
  const boundMs = Math.min(functionBackoffMaxMs, functionBackoffMs * 2 ** Math.min(attempt - 1, 30))
  return Math.ceil(boundMs * random())
}
