/**
 * Port: jobs that change many records in pages. The feature that writes records runs the pages; the feature that runs
 * jobs stores them, leases them to one node at a time and repeats what failed.
 */

export type BulkState = 'waiting' | 'running' | 'done' | 'failed' | 'canceled'

/** A job that is stored; times are milliseconds since 1970. */
export interface StoredBulkJob {
  readonly id: string
  /** The table that it changes. */
  readonly key: string
  /** JSON. */
  readonly input: string
  readonly state: BulkState
  /** What its last page has saved; null before the first one. */
  readonly progress: string | null
  /** Why it has failed, or why its last attempt has. */
  readonly error: string | null
  readonly createdAtMs: number
  readonly finishedAtMs: number | null
}

export interface BulkJobs {
  /**
   * Adds a job; returns its id. Throws 409 while the key has an unfinished job or too many jobs are unfinished.
   */
  add(key: string, input: string): Promise<string>
  /** The newest first. */
  list(key: string, limit: number): Promise<readonly StoredBulkJob[]>
  find(id: string): Promise<StoredBulkJob | null>
  /**
   * Ends an unfinished job, after the page under way: resolves once no page of it can commit any more, with all that
   * have in its progress. False if it has ended. Throws 503 where nodes keep claiming it.
   */
  cancel(id: string): Promise<boolean>
}

/** A job as one claim has found it. */
export interface BulkClaim {
  readonly id: string
  /** The fencing token of the claim: higher than those of all earlier ones. */
  readonly token: number
  readonly input: string
  readonly progress: string | null
}

/** An attempt under way on this node. */
export interface BulkRun extends BulkClaim {
  /** Whether no other attempt follows if this one fails. */
  readonly isLast: boolean
  /** Aborted when the job is canceled or another node has it. */
  readonly signal: AbortSignal
  /** Aborted when the server closes: the attempt ends after its page, and another one continues. */
  readonly closing: AbortSignal
  /** Saves the progress; false if the job was canceled or another node has it. */
  save(progress: string): Promise<boolean>
}

/** A job that no further attempt can complete. */
export class BulkFailure extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'BulkFailure'
  }
}

/** The attempt has lost its lease: the job was canceled, or another node has it. */
export class LeaseLost extends Error {
  constructor() {
    super('The job was canceled, or another node has it')
    this.name = 'LeaseLost'
  }
}

/** What the feature that writes records does for bulk jobs. */
export interface BulkWork {
  /** Runs an attempt: resolves once the job is done, or the attempt has ended early. Throws `BulkFailure`. */
  run(run: BulkRun): Promise<'done' | 'interrupted'>
  /**
   * Ends the writes of every earlier claim; resolves with the progress of all pages that have committed. Throws
   * `LeaseLost` where the job was claimed again.
   */
  fence(claim: BulkClaim): Promise<string | null>
  /** Records the end of a canceled job, with its final progress, in the audit log. */
  recordCanceled(claim: BulkClaim): Promise<void>
}
