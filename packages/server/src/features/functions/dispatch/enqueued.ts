/** The jobs that a transaction has added, as the dispatcher finds them in the change log; see `transaction-jobs`. */
import type { LoggedJob } from '../../transaction-jobs.ts'
import type { NewJob } from '../jobs/job.ts'
import { causeOf } from './cause.ts'
import type { Change } from './change-logs.ts'

/** Null for a row without a job, which no version of the server writes. */
export function enqueuedJob(change: Change): NewJob | null {
  const job = change.after as LoggedJob | null
  if (!job) return null
  return {
    id: change.id,
    function: job.function,
    kind: 'queue',
    key: job.key,
    uniqueKey: job.uniqueKey,
    input: JSON.stringify(job.input ?? null),
    runAtMs: job.runAtMs,
    depth: (causeOf(change.requestId)?.depth ?? 0) + 1,
  }
}
