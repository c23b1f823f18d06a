/**
 * Port: jobs that functions add within a transaction. The feature that writes records stores them with its changes; the
 * feature that runs functions checks them before and makes jobs of them afterwards.
 *
 * A job is stored as a row of the change log of its database, in a table that does not exist, so that it exists if and
 * only if its transaction was committed.
 */

/** Declared names cannot start with an underscore. */
export const transactionJobsTable = '_jobs'

/** A job as the change log stores it, with its id beside it. */
export interface LoggedJob {
  /** The function that runs it. */
  readonly function: string
  readonly input: unknown
  /** Milliseconds since 1970. */
  readonly runAtMs: number
  readonly key: string | null
  readonly uniqueKey: string | null
}

export interface CheckedJob {
  readonly id: string
  readonly job: LoggedJob
}

/**
 * Checks the jobs of a transaction. Throws 400, 404 and 413 for jobs that cannot be added, and 503 while too many are
 * unfinished.
 */
export type CheckTransactionJobs = (jobs: readonly unknown[]) => Promise<readonly CheckedJob[]>
