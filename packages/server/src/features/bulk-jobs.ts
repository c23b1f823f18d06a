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
  /** Ends an unfinished job after the page under way; false if it has ended. */
  cancel(id: string): Promise<boolean>
}

/** An attempt under way on this node. */
export interface BulkRun {
  readonly id: string
  readonly input: string
  readonly progress: string | null
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

/** Runs an attempt: resolves once the job is done, or the attempt has ended early. Throws `BulkFailure`. */
export type RunBulkJob = (run: BulkRun) => Promise<'done' | 'interrupted'>
