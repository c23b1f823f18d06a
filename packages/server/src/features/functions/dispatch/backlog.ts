/** Bounds the unfinished jobs: while there are too many, `enqueue` is refused and the dispatcher waits. */
import { type Clock, waitOn } from '../../../base/clock.ts'
import type { Log } from '../../../base/log.ts'
import { functionJobsPollMs, functionJobsWaitingChars, functionJobsWaitingMax } from '../../../limits/function-jobs.ts'
import type { NewJob } from '../jobs/job.ts'
import type { JobAdmin } from '../jobs/job-admin.ts'

export interface Backlog {
  /** Counts jobs that were added; other nodes' are counted when the numbers are read again. */
  add(jobs: readonly NewJob[]): void
  isFull(): Promise<boolean>
  /** Resolves once there is room. */
  room(): Promise<void>
}

export interface BacklogDeps {
  readonly admin: Pick<JobAdmin, 'backlog'>
  readonly clock: Clock
  readonly log: Log
  readonly jobsMax?: number
  readonly charsMax?: number
}

export function createBacklog(deps: BacklogDeps): Backlog {
  const { admin, clock, log, jobsMax = functionJobsWaitingMax, charsMax = functionJobsWaitingChars } = deps
  let known = { jobs: 0, chars: 0 }
  let readMs = Number.NEGATIVE_INFINITY
  let wasFull = false

  const isOver = (): boolean => known.jobs >= jobsMax || known.chars >= charsMax

  async function isFull(): Promise<boolean> {
    const ageMs = clock.now() - readMs
    // Between reads the numbers only grow: read again where that matters.
    if (ageMs >= 10 * functionJobsPollMs || (isOver() && ageMs >= functionJobsPollMs)) {
      readMs = clock.now()
      known = { ...(await admin.backlog()) }
    }
    const isFullNow = isOver()
    if (isFullNow && !wasFull) log.error('functions.backlog_full', known)
    wasFull = isFullNow
    return isFullNow
  }

  return {
    add(jobs) {
      known.jobs += jobs.length
      for (const { input } of jobs) known.chars += input.length
    },
    isFull,
    async room() {
      while (await isFull()) await waitOn(clock, functionJobsPollMs)
    },
  }
}
