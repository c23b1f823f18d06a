/** A job: one run of a function that must happen, with its retries. */

/**
 * `waiting`: not started yet; `running`; `done`; `failed`: the last attempt failed and another one follows; `dead`: no
 * attempt follows, the job is a dead letter that can be retried by hand.
 */
export const jobStatuses = ['waiting', 'running', 'done', 'failed', 'dead'] as const
export type JobStatus = (typeof jobStatuses)[number]

export type JobKind = 'onChange' | 'queue' | 'schedule' | 'webhook' | 'mail' | 'onUser' | 'bulk'

export interface NewJob {
  /** Text of at most `functionJobKeyCharsMax` characters; a job with the id of an existing one is not added. */
  readonly id: string
  /** The function that runs it. */
  readonly function: string
  readonly kind: JobKind
  /** Jobs of a function with one key run one after the other, in the order of creation; null: in any order. */
  readonly key: string | null
  /** At most one unfinished job of a function has it. */
  readonly uniqueKey: string | null
  /** JSON. */
  readonly input: string
  readonly runAtMs: number
  /** How many functions caused it, one after the other: 1 for a job of a client's write. */
  readonly depth: number
}

/** A job that this node runs. */
export interface ClaimedJob extends Omit<NewJob, 'uniqueKey' | 'runAtMs'> {
  /** From 1. */
  readonly attempt: number
  /** Increases with every claim: what an earlier holder reports has no effect. */
  readonly fence: number
  readonly createdAtMs: number
  /** How far earlier attempts have come, as they saved it; null at first. */
  readonly progress: string | null
}

/** How an attempt ended. */
export type Outcome =
  | { readonly kind: 'done' }
  /** Another attempt follows. */
  | { readonly kind: 'failed'; readonly retryAtMs: number; readonly error: string }
  | { readonly kind: 'dead'; readonly error: string }
  /** The attempt did not begin and does not count. */
  | { readonly kind: 'returned'; readonly retryAtMs: number }

export interface Finished {
  readonly job: ClaimedJob
  readonly outcome: Outcome
}

/** At most `count` starts in any time of `windowMs`, on all nodes together. */
export interface Rate {
  readonly count: number
  readonly windowMs: number
}
