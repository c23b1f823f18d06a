/**
 * Jobs that are enqueued in a transaction: rows of the change log of its database, in a table that does not exist. The
 * dispatcher turns them into jobs, so that a job exists if and only if its transaction was committed.
 *
 * A row has `table` `_jobs`, the job's id as `id`, and `after` with the members of `EnqueuedRow`.
 */
import type { NewJob } from '../jobs/job.ts'
import { causeOf } from './cause.ts'
import type { Change } from './change-logs.ts'

/** Declared names cannot start with an underscore. */
export const enqueuedTable = '_jobs'

interface EnqueuedRow {
  /** The name of the queue. */
  readonly queue: string
  readonly input: unknown
  /** Milliseconds since 1970; at once if absent. */
  readonly runAtMs?: number
  readonly key?: string
  readonly uniqueKey?: string
}

/** The job of a change of `enqueuedTable`; null where its queue is not declared any more. */
export function enqueuedJob(
  change: Change,
  functions: ReadonlyMap<string, { readonly name: string; readonly queue: string | null }>,
  nowMs: number,
): NewJob | null {
  const row = change.after as EnqueuedRow | null
  if (!row) return null
  const declared = [...functions.values()].find(({ queue }) => queue === row.queue)
  if (!declared) return null
  return {
    id: change.id,
    function: declared.name,
    kind: 'queue',
    key: row.key ?? null,
    uniqueKey: row.uniqueKey ?? null,
    input: JSON.stringify(row.input ?? null),
    runAtMs: row.runAtMs ?? nowMs,
    depth: (causeOf(change.requestId)?.depth ?? 0) + 1,
  }
}
