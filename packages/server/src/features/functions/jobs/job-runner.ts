/**
 * Runs stored jobs on this node: claims due ones within its bounds, renews their leases, records how they ended, and
 * takes over the jobs of nodes that died. `run` performs a job; what it is to the application is not known here.
 */
import { type Clock, waitOn } from '../../../base/clock.ts'
import type { Log } from '../../../base/log.ts'
import {
  functionBusyPauseMs,
  functionJobLeaseMs,
  functionJobsFinishedTogetherMax,
  functionJobsOfOneMax,
  functionJobsPollMs,
  functionJobsRunningMax,
} from '../../../limits/function-jobs.ts'
import { backoffMs } from './backoff.ts'
import type { ClaimedJob, Finished, Outcome, Rate } from './job.ts'
import { JobError } from './job-error.ts'
import type { JobStore } from './job-store.ts'

/** What the runner knows of a function that has jobs. */
export interface JobFunction {
  readonly name: string
  /** Attempts after the first. */
  readonly retries: number
  /** On all nodes together; null without a bound. */
  readonly concurrency: number | null
  readonly rate: Rate | null
}

/**
 * Performs a job; throws where it failed. The signal is aborted when the result no longer counts, and `closing` when
 * the server begins to close: a job that can continue later ends as `busy` then.
 */
export type RunClaimed = (job: ClaimedJob, signal: AbortSignal, closing: AbortSignal) => Promise<void>

export interface JobRunnerDeps {
  readonly store: JobStore
  /** The functions whose jobs this node can run, by name. */
  readonly functions: () => ReadonlyMap<string, JobFunction>
  readonly run: RunClaimed
  /** Identifies this run of this process. */
  readonly holder: string
  /** Whether no other process runs these jobs: what runs according to the store was interrupted. */
  readonly isSole: boolean
  readonly clock: Clock
  readonly log: Log
  /** From 0 to below 1. */
  readonly random?: () => number
}

/** Counts since the start of this process. */
export interface JobCounts {
  done: number
  failed: number
  dead: number
  /** Attempts whose lease had been lost when they ended. */
  lost: number
}

interface Running {
  readonly job: ClaimedJob
  readonly controller: AbortController
}

export class JobRunner {
  readonly counts: JobCounts = { done: 0, failed: 0, dead: 0, lost: 0 }
  readonly #deps: JobRunnerDeps
  readonly #running = new Map<string, Running>()
  readonly #runningOf = new Map<string, number>()
  /** Functions that may have due jobs. */
  readonly #hinted = new Set<string>()
  /** When a function's rate permits the next start. */
  readonly #notBefore = new Map<string, number>()
  #finished: Finished[] = []
  #isPolled = true
  #claiming: Promise<void> | null = null
  #flushing: Promise<void> | null = null
  /** The earliest of the pending timers. */
  #timerMs = Number.POSITIVE_INFINITY
  #isStopped = true
  #closing = new AbortController()
  #hasFailed = false

  constructor(deps: JobRunnerDeps) {
    this.#deps = deps
  }

  /** Jobs that this node runs now. */
  get size(): number {
    return this.#running.size
  }

  get isStarted(): boolean {
    return !this.#isStopped
  }

  async start(): Promise<void> {
    if (this.#deps.isSole) await this.#deps.store.expireLeases()
    this.#isStopped = false
    this.#closing = new AbortController()
    await this.#keepLeases()
    void this.#repeat(functionJobsPollMs, async () => this.#poll())
    void this.#repeat(functionJobLeaseMs / 3, () => this.#keepLeases())
    this.#poll()
  }

  /** To be called when functions may have due jobs. */
  wake(names: Iterable<string>): void {
    for (const name of names) this.#hinted.add(name)
    this.#claim()
  }

  /** To be called when a function has a job for a later time. */
  wakeAt(name: string, atMs: number): void {
    const { clock } = this.#deps
    if (atMs <= clock.now()) {
      this.wake([name])
      return
    }
    if (atMs >= this.#timerMs) return
    this.#timerMs = atMs
    void waitOn(clock, atMs - clock.now()).then(() => {
      if (this.#timerMs === atMs) this.#timerMs = Number.POSITIVE_INFINITY
      this.#poll()
    })
  }

  /** When the next job may start, if jobs wait for a later time; infinite otherwise. */
  get nextDueMs(): number {
    return this.#timerMs
  }

  /** Runs the jobs that are due until none is left that may start now. */
  async finishDue(): Promise<void> {
    this.#poll()
    while (!this.#isStopped) {
      if (this.#claiming) await this.#claiming
      else if (this.#flushing) await this.#flushing
      else if (this.#running.size > 0) await this.#nextEnd()
      else return
    }
  }

  /** Claims no more jobs, waits for the current ones up to `drainMs`, and returns the rest to the store. */
  async stop(drainMs: number): Promise<void> {
    this.#isStopped = true
    this.#closing.abort(new Error('The server closes'))
    await this.#claiming
    const ended = (async () => {
      while (this.#running.size > 0 || this.#flushing) await (this.#flushing ?? this.#nextEnd())
    })()
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, drainMs).unref())])
    const rest = [...this.#running.values()]
    this.#running.clear()
    for (const { job, controller } of rest) {
      controller.abort(new Error('The server closes'))
      this.#report({ job, outcome: { kind: 'returned', retryAtMs: this.#deps.clock.now() } })
    }
    this.#onEnd()
    await this.#flushing
  }

  #onEnd: () => void = () => {}

  #nextEnd(): Promise<void> {
    return new Promise((resolve) => {
      this.#onEnd = resolve
    })
  }

  async #repeat(everyMs: number, work: () => Promise<void>): Promise<void> {
    while (!this.#isStopped) {
      await waitOn(this.#deps.clock, everyMs)
      if (!this.#isStopped) await work()
    }
  }

  #poll(): void {
    this.#isPolled = true
    this.#claim()
  }

  /** One claim runs at a time; it repeats while functions are hinted. */
  #claim(): void {
    if (this.#isStopped || this.#claiming) return
    this.#claiming = this.#claimAll()
      .then(() => {
        this.#hasFailed = false
      })
      .catch((error) => this.#onFailure(error))
      .finally(() => {
        this.#claiming = null
      })
  }

  async #claimAll(): Promise<void> {
    const { store, functions, clock } = this.#deps
    while ((this.#isPolled || this.#hinted.size > 0) && !this.#isStopped) {
      if (this.#isPolled) {
        this.#isPolled = false
        const due = await store.dueTimes([...functions().keys()])
        for (const [name, atMs] of due) {
          if (atMs <= clock.now()) this.#hinted.add(name)
          else this.wakeAt(name, atMs)
        }
      }
      const names = [...this.#hinted]
      this.#hinted.clear()
      for (const name of names) await this.#claimOf(name)
    }
  }

  async #claimOf(name: string): Promise<void> {
    const { store, functions, holder, clock } = this.#deps
    const declared = functions().get(name)
    const room = Math.min(
      functionJobsRunningMax - this.#running.size,
      functionJobsOfOneMax - (this.#runningOf.get(name) ?? 0),
    )
    if (!declared || room <= 0 || this.#isStopped) return
    const notBeforeMs = this.#notBefore.get(name) ?? 0
    if (notBeforeMs > clock.now()) {
      this.wakeAt(name, notBeforeMs)
      return
    }
    const { concurrency, rate } = declared
    const claimed = await store.claim(name, holder, room, { concurrency, rate })
    if (claimed.notBeforeMs !== null) {
      this.#notBefore.set(name, claimed.notBeforeMs)
      this.wakeAt(name, claimed.notBeforeMs)
    }
    for (const job of claimed.jobs) this.#begin(job)
    // A rate may permit more jobs than it did when the claim began.
    if (claimed.jobs.length > 0 && (claimed.jobs.length === room || rate)) this.#hinted.add(name)
  }

  #begin(job: ClaimedJob): void {
    const controller = new AbortController()
    const running = { job, controller }
    this.#running.set(job.id, running)
    this.#runningOf.set(job.function, (this.#runningOf.get(job.function) ?? 0) + 1)
    void this.#perform(running)
  }

  async #perform(running: Running): Promise<void> {
    const { job, controller } = running
    const outcome = await this.#deps.run(job, controller.signal, this.#closing.signal).then(
      (): Outcome => ({ kind: 'done' }),
      (error: unknown) => this.#outcomeOf(job, error),
    )
    const left = (this.#runningOf.get(job.function) ?? 1) - 1
    if (left === 0) this.#runningOf.delete(job.function)
    else this.#runningOf.set(job.function, left)
    // Returned to the store meanwhile, or lost to another node.
    if (this.#running.get(job.id) === running) {
      this.#running.delete(job.id)
      this.#report({ job, outcome })
    }
    this.#onEnd()
  }

  #outcomeOf(job: ClaimedJob, error: unknown): Outcome {
    const { clock, functions, random = Math.random } = this.#deps
    const text = error instanceof Error ? error.message : String(error)
    const nowMs = clock.now()
    const kind = error instanceof JobError ? error.kind : 'failed'
    if (kind === 'busy') return { kind: 'returned', retryAtMs: nowMs + functionBusyPauseMs }
    const retries = functions().get(job.function)?.retries ?? 0
    if (kind === 'final' || job.attempt > retries) return { kind: 'dead', error: text }
    const givenMs = error instanceof JobError ? error.retryAfterMs : null
    return { kind: 'failed', retryAtMs: nowMs + (givenMs ?? backoffMs(job.attempt, random)), error: text }
  }

  #report(finished: Finished): void {
    this.#finished.push(finished)
    this.#flushing ??= this.#flush().finally(() => {
      this.#flushing = null
      this.#onEnd()
    })
  }

  /** Records ends of attempts, as many as there are, in one transaction at a time. Repeats one that failed. */
  async #flush(): Promise<void> {
    const { store } = this.#deps
    for (let tries = 0; this.#finished.length > 0; ) {
      const batch = this.#finished.slice(0, functionJobsFinishedTogetherMax)
      try {
        const kept = await store.finish(batch)
        this.#finished = this.#finished.slice(batch.length)
        for (const [at, finished] of batch.entries()) this.#count(finished, kept[at] === true)
        this.wake(new Set(batch.map(({ job }) => job.function)))
        tries = 0
      } catch (error) {
        this.#onFailure(error)
        // The leases of these jobs end in the meantime at the latest.
        if (this.#isStopped && ++tries > 3) return
        await new Promise((resolve) => setTimeout(resolve, functionBusyPauseMs).unref())
      }
    }
  }

  #count({ job, outcome }: Finished, isKept: boolean): void {
    const { log } = this.#deps
    const { id, function: name, attempt } = job
    if (!isKept) this.counts.lost++
    else if (outcome.kind === 'done') this.counts.done++
    else if (outcome.kind === 'failed') {
      this.counts.failed++
      log.warn('functions.job_failed', {
        function: name,
        job: id,
        attempt,
        retryAtMs: outcome.retryAtMs,
        error: outcome.error,
      })
      this.wakeAt(name, outcome.retryAtMs)
    } else if (outcome.kind === 'dead') {
      this.counts.dead++
      log.error('functions.job_dead', { function: name, job: id, attempt, error: outcome.error })
    } else this.wakeAt(name, outcome.retryAtMs)
  }

  /** Renews the leases of running jobs, aborts those that are lost, and takes over those of others that expired. */
  async #keepLeases(): Promise<void> {
    const { store, holder, functions } = this.#deps
    try {
      if (this.#running.size > 0) {
        const before = [...this.#running.values()]
        const leases = await store.renew(holder)
        for (const running of before) {
          const { job, controller } = running
          if (leases.get(job.id) === job.fence || this.#running.get(job.id) !== running) continue
          this.#running.delete(job.id)
          this.counts.lost++
          controller.abort(new Error('The job was canceled, or another node has taken it over'))
        }
      }
      const recovered = await store.recover((name) => functions().get(name)?.retries ?? 0)
      if (recovered > 0) this.#poll()
    } catch (error) {
      this.#onFailure(error)
    }
  }

  /** Logs the first of several failures in a row. */
  #onFailure(error: unknown): void {
    if (!this.#hasFailed) this.#deps.log.warn('functions.jobs_unavailable', { error })
    this.#hasFailed = true
  }
}
