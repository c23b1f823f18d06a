/**
 * The scheduler of housekeeping jobs: intervals aligned to the clock, leases so that one of several nodes runs a
 * job, and counters.
 *
 * A job must be idempotent and safe to abort: a node that was suspended in the middle of a run does not know that its
 * lease has expired and another node runs the job.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Leases } from '../engines/cluster/cluster.ts'
import type { HousekeepingJob } from '../features/feature.ts'
import { jobClockSkewMs, jobDrainMs, jobJitterMaxMs, jobLeaseMs, jobRunMaxMs } from '../limits/jobs.ts'

/** Counters of a job since the start. */
export interface JobCounts {
  readonly name: string
  runs: number
  failures: number
  /** Total of all runs. */
  seconds: number
  /** Milliseconds since 1970; 0 before the first. */
  lastSuccessMs: number
}

export interface Jobs {
  readonly counts: readonly JobCounts[]
  /** The names of the leases of jobs that this node holds. */
  ownLeases(): readonly string[]
  /** Runs every job now, one after the other in the order of declaration, without leases. */
  runAll(): Promise<void>
  /** Starts no more runs, aborts the current ones and waits for them up to `jobDrainMs`. */
  close(): Promise<void>
}

/** Calls a function at the times of an interval; returns the function that stops it. */
export type Plan = (intervalMs: number, call: () => Promise<void>) => () => void

export interface JobsDeps {
  /** Null where this process is the only node. */
  readonly leases: Leases | null
  /** Identifies this process as a lease holder. */
  readonly holder: string
  readonly clock: Clock
  readonly log: Log
  readonly plan?: Plan
  /** From 0 (inclusive) to 1 (exclusive). */
  readonly random?: () => number
  readonly leaseMs?: number
}

/** The first multiple of an interval since 1970 after a time, in milliseconds: the same moments on all nodes. */
export const nextTimeMs = (intervalMs: number, afterMs: number): number =>
  (Math.floor(afterMs / intervalMs) + 1) * intervalMs

const planByClock =
  (clock: Clock): Plan =>
  (intervalMs, call) => {
    const schedule = (afterMs: number): ReturnType<typeof setTimeout> =>
      setTimeout(run, nextTimeMs(intervalMs, afterMs) - clock.now()).unref()
    const run = (): void => {
      // A timer that fires a little early does not run the job a second time.
      timer = schedule(clock.now() + intervalMs / 2)
      void call()
    }
    let timer = schedule(clock.now())
    return () => clearTimeout(timer)
  }

/** The maximum random delay of a run. */
const jitterOf = (intervalMs: number): number => Math.min(intervalMs / 10, jobJitterMaxMs)

/** Starts the scheduler. */
export function openJobs(jobs: readonly HousekeepingJob[], deps: JobsDeps): Jobs {
  const { plan = planByClock(deps.clock) } = deps
  const closing = new AbortController()
  const runners = jobs.map((job) => createRunner(job, deps, closing.signal))
  const stops = runners.map(({ job, runScheduled }) => plan(job.intervalMs, runScheduled))

  return {
    counts: runners.map(({ counts }) => counts),
    ownLeases: () => runners.flatMap(({ ownLease }) => ownLease() ?? []),
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
  readonly job: HousekeepingJob
  ownLease(): string | null
  readonly counts: JobCounts
  /** Runs the job if this node gets the lease; does nothing while the previous run is in progress. */
  runScheduled(): Promise<void>
  runNow(): Promise<void>
  ended(): Promise<void>
}

function createRunner(job: HousekeepingJob, deps: JobsDeps, closing: AbortSignal): Runner {
  const { clock, log, random = Math.random } = deps
  const counts: JobCounts = { name: job.name, runs: 0, failures: 0, seconds: 0, lastSuccessMs: 0 }
  const jitterMs = jitterOf(job.intervalMs)
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

  /** Runs do not overlap. */
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
    ownLease: () => jobLease.current(),
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
  /**
   * Runs the work if this node gets the lease; does nothing if another node has it or the lease store is unavailable.
   */
  runWithLease(work: (signal: AbortSignal) => Promise<void>, closing: AbortSignal): Promise<void>
  /** Releases the lease at once. */
  release(): Promise<void>
  /** Its name while this node has it, null otherwise. */
  current(): string | null
}

/** The lease is kept for `keptMs` after a run, so that nodes with a later jitter do not run the job again. */
function createJobLease(
  { name, perNode = false }: HousekeepingJob,
  { leases, holder, log, leaseMs = jobLeaseMs }: JobsDeps,
  keptMs: number,
): JobLease {
  if (leases === null || perNode)
    return { runWithLease: (work, closing) => work(closing), release: async () => {}, current: () => null }
  const lease = `job ${name}`
  let wasTaken = false
  let ownUntilMs = 0

  return {
    current: () => (performance.now() < ownUntilMs ? lease : null),
    async runWithLease(work, closing) {
      const acquiredMs = performance.now()
      try {
        if ((await leases.acquire(lease, holder, leaseMs)) === null) return
      } catch (error) {
        return log.warn('job.lease_unavailable', { job: name, error })
      }
      wasTaken = true
      ownUntilMs = Number.POSITIVE_INFINITY
      const lost = new AbortController()
      const stop = renewUntilStopped({ renew: () => leases.renew(lease, holder, leaseMs), leaseMs, acquiredMs, lost })
      try {
        await work(AbortSignal.any([closing, lost.signal]))
      } finally {
        stop()
        ownUntilMs = lost.signal.aborted ? 0 : performance.now() + keptMs
        await leases.renew(lease, holder, keptMs).catch(() => {})
      }
    },
    async release() {
      ownUntilMs = 0
      if (wasTaken) await leases.release(lease, holder).catch(() => {})
    },
  }
}

/** Renews a lease until stopped; aborts `lost` once the lease must be considered lost. */
function renewUntilStopped(lease: {
  readonly renew: () => Promise<boolean>
  readonly leaseMs: number
  /** When the lease was acquired, on the monotonic clock. */
  readonly acquiredMs: number
  readonly lost: AbortController
}): () => void {
  const { renew, leaseMs, acquiredMs, lost } = lease
  let untilMs = acquiredMs + leaseMs
  const timer = setInterval(async () => {
    const nowMs = performance.now()
    if (nowMs - acquiredMs > jobRunMaxMs) return giveUp()
    // Null: the lease store is unavailable. Until the lease would have expired, this node still holds it.
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
