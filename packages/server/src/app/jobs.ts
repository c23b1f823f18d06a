/**
 * Work that the server does by itself: what, how often, and that of several nodes one does it. Owns schedules, leases
 * and what is counted; what a job does is its feature's.
 *
 * A job must be harmless when it is done twice or cut short: a node that was paused in the middle of one does not know
 * yet that another has gone on.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Cron } from 'croner'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Leases } from '../engines/cluster/cluster.ts'
import type { HousekeepingJob } from '../features/feature.ts'
import { jobClockSkewMs, jobDrainMs, jobJitterMaxMs, jobLeaseMs, jobRunMaxMs } from '../limits/jobs.ts'

/** A feature's job with its schedule. */
export interface Job extends Omit<HousekeepingJob, 'intervalMs'> {
  /** A pattern of cron in UTC, with seconds before the minutes if need be; see `every`. */
  readonly schedule: string
}

/** What is counted of a job since the start. */
export interface JobCounts {
  readonly name: string
  runs: number
  failures: number
  /** Of all runs together. */
  seconds: number
  /** Milliseconds since 1970; 0 before the first. */
  lastSuccessMs: number
}

export interface Jobs {
  readonly counts: readonly JobCounts[]
  /** Does every job now, one after the other in the order of their declaration, whosever turn it is. */
  runAll(): Promise<void>
  /** Begins nothing more, tells what runs to end, and waits for it a while. */
  close(): Promise<void>
}

/** Calls at the times of a pattern until the function it gives back is called. */
export type Plan = (schedule: string, call: () => Promise<void>) => () => void

export interface JobsDeps {
  /** Null where this process is the only node. */
  readonly leases: Leases | null
  /** This run of this process. */
  readonly holder: string
  readonly clock: Clock
  readonly log: Log
  readonly plan?: Plan
  /** From 0 to 1, the latter not included. */
  readonly random?: () => number
  readonly leaseMs?: number
}

/**
 * The pattern of an interval, aligned to the clock so that all nodes mean the same moments. Throws `RangeError` for one
 * that is not whole seconds that divide a minute, or whole minutes that divide an hour.
 */
export function every(intervalMs: number): string {
  const seconds = intervalMs / 1000
  if (Number.isInteger(seconds) && seconds > 0 && seconds < 60 && 60 % seconds === 0) return `*/${seconds} * * * * *`
  const minutes = seconds / 60
  if (Number.isInteger(minutes) && minutes > 0 && minutes <= 60 && 60 % minutes === 0)
    return minutes === 60 ? '0 * * * *' : `*/${minutes} * * * *`
  throw new RangeError(`An interval of ${intervalMs} ms is no pattern`)
}

/** An offset, not the name of a zone: names are looked up in a database whose first use takes a tenth of the start. */
const inUtc = { utcOffset: 0 }

const planByCron: Plan = (schedule, call) => {
  const cron = new Cron(schedule, { unref: true, ...inUtc }, call)
  return () => cron.stop()
}

/** How late a node may begin. */
function jitterOf(schedule: string): number {
  const [first = 0, second = 0] = new Cron(schedule, { paused: true, ...inUtc }).nextRuns(2).map(Number)
  return Math.min((second - first) / 10, jobJitterMaxMs)
}

/** Has each job done at its times. Throws `TypeError` for a schedule that is none. Must be closed. */
export function openJobs(jobs: readonly Job[], deps: JobsDeps): Jobs {
  const { plan = planByCron } = deps
  const closing = new AbortController()
  const runners = jobs.map((job) => createRunner(job, deps, closing.signal))
  const stops = runners.map(({ job, runScheduled }) => plan(job.schedule, runScheduled))

  return {
    counts: runners.map(({ counts }) => counts),
    async runAll() {
      for (const { runNow } of runners) await runNow()
    },
    async close() {
      for (const stop of stops) stop()
      closing.abort()
      const ended = Promise.all(runners.map(({ ended }) => ended()))
      await Promise.race([ended, sleep(jobDrainMs, undefined, { ref: false })])
    },
  }
}

interface Runner {
  readonly job: Job
  readonly counts: JobCounts
  /** One go if nobody else has it; none while the last one still runs. */
  runScheduled(): Promise<void>
  runNow(): Promise<void>
  ended(): Promise<void>
}

function createRunner(job: Job, deps: JobsDeps, closing: AbortSignal): Runner {
  const { clock, log, random = Math.random } = deps
  const counts: JobCounts = { name: job.name, runs: 0, failures: 0, seconds: 0, lastSuccessMs: 0 }
  const jitterMs = jitterOf(job.schedule)
  const jobLease = createJobLease(job, deps, jitterMs + jobClockSkewMs)
  let running: Promise<void> | null = null

  async function perform(signal: AbortSignal): Promise<void> {
    const startedMs = performance.now()
    counts.runs++
    try {
      await job.run(signal)
      counts.lastSuccessMs = clock.now()
    } catch (error) {
      counts.failures++
      log.error('job.failed', { job: job.name, error })
    }
    counts.seconds += (performance.now() - startedMs) / 1000
  }

  async function runAfterJitter(): Promise<void> {
    const isOpen = await sleep(random() * jitterMs, true, { ref: false, signal: closing }).catch(() => false)
    if (isOpen) await jobLease.runWithLease(perform, closing)
  }

  /** Never twice at once. */
  function begin(go: () => Promise<void>): Promise<void> {
    const mine = go().finally(() => {
      if (running === mine) running = null
    })
    running = mine
    return mine
  }

  return {
    job,
    counts,
    async runScheduled() {
      if (running === null && !closing.aborted) await begin(runAfterJitter)
    },
    async runNow() {
      while (running !== null) await running
      await begin(() => perform(closing))
    },
    async ended() {
      await running
      await jobLease.release()
    },
  }
}

interface JobLease {
  /** Runs the work while this node has the job; does nothing where another has it, or where nobody can tell. */
  runWithLease(work: (signal: AbortSignal) => Promise<void>, closing: AbortSignal): Promise<void>
  /** Lets another node have the job at once. */
  release(): Promise<void>
}

/** The job is kept for `keptMs` after a go, so that nodes whose time comes a little later find it done. */
function createJobLease(
  { name, perNode = false }: Job,
  { leases, holder, log, leaseMs = jobLeaseMs }: JobsDeps,
  keptMs: number,
): JobLease {
  if (leases === null || perNode) return { runWithLease: (work, closing) => work(closing), release: async () => {} }
  const lease = `job ${name}`
  let wasTaken = false

  return {
    async runWithLease(work, closing) {
      const acquiredMs = performance.now()
      try {
        if ((await leases.acquire(lease, holder, leaseMs)) === null) return
      } catch (error) {
        return log.warn('job.lease_unavailable', { job: name, error })
      }
      wasTaken = true
      const lost = new AbortController()
      const stop = renewUntilStopped({ renew: () => leases.renew(lease, holder, leaseMs), leaseMs, acquiredMs, lost })
      try {
        await work(AbortSignal.any([closing, lost.signal]))
      } finally {
        stop()
        await leases.renew(lease, holder, keptMs).catch(() => {})
      }
    },
    async release() {
      if (wasTaken) await leases.release(lease, holder).catch(() => {})
    },
  }
}

/** Renews until told to stop, and says so once the lease must be taken as lost. */
function renewUntilStopped(held: {
  readonly renew: () => Promise<boolean>
  readonly leaseMs: number
  /** When it was last asked for with success, of the monotonic clock. */
  readonly acquiredMs: number
  readonly lost: AbortController
}): () => void {
  const { renew, leaseMs, acquiredMs, lost } = held
  let untilMs = acquiredMs + leaseMs
  const timer = setInterval(async () => {
    const nowMs = performance.now()
    if (nowMs - acquiredMs > jobRunMaxMs) return giveUp()
    // Null: nobody can tell right now, and until the lease would have ended it is still ours.
    const isOurs = await renew().catch(() => null)
    if (isOurs) untilMs = nowMs + leaseMs
    if (isOurs === false || performance.now() > untilMs) giveUp()
  }, leaseMs / 3)
  timer.unref()
  const stop = (): void => clearInterval(timer)

  function giveUp(): void {
    stop()
    lost.abort()
  }
  return stop
}
