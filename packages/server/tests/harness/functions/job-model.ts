/** A model of the jobs of one function, as small as the rules FN-JOB-1 to FN-JOB-7 permit. */
import { expect } from 'bun:test'
import type { ClaimedJob, JobStatus, NewJob, Outcome } from '../../../src/features/functions/jobs/job.ts'

interface Job {
  readonly id: string
  readonly key: string | null
  readonly uniqueKey: string | null
  status: JobStatus
  attempt: number
  fence: number
  runAtMs: number
  holder: string | null
  leaseUntilMs: number
  /** Whether it may be claimed: it is the first of its key that is not finished. */
  isReady: boolean
}

const isFinished = ({ status }: Job): boolean => status === 'done' || status === 'dead'

export class ModelOfJobs {
  /** In the order of creation. */
  readonly #jobs: Job[] = []
  readonly #leaseMs: number
  readonly #crashAttempts: number
  isPaused = false

  constructor({ leaseMs, crashAttempts }: { readonly leaseMs: number; readonly crashAttempts: number }) {
    this.#leaseMs = leaseMs
    this.#crashAttempts = crashAttempts
  }

  get ids(): readonly string[] {
    return this.#jobs.map(({ id }) => id)
  }

  stored() {
    return this.#jobs.map(({ id, status, attempt, runAtMs, holder }) => ({ id, status, attempt, runAtMs, holder }))
  }

  enqueue({ id, key, uniqueKey, runAtMs }: NewJob): { readonly id: string; readonly isNew: boolean } {
    const other = this.#jobs.find((one) => uniqueKey !== null && one.uniqueKey === uniqueKey && !isFinished(one))
    if (other) return { id: other.id, isNew: false }
    const isReady = key === null || this.#unfinished(key).length === 0
    const state = { status: 'waiting', attempt: 0, fence: 0, holder: null, leaseUntilMs: 0 } as const
    this.#jobs.push({ id, key, uniqueKey, runAtMs, isReady, ...state })
    return { id, isNew: true }
  }

  claim(holder: string, limit: number, nowMs: number): { id: string; attempt: number; fence: number }[] {
    if (this.isPaused) return []
    const due = this.#jobs.filter(({ isReady, runAtMs }) => isReady && runAtMs <= nowMs)
    // Stable: of jobs that are due at the same time the older one is first.
    return [...due]
      .sort((a, b) => a.runAtMs - b.runAtMs)
      .slice(0, limit)
      .map((job) => {
        job.status = 'running'
        job.isReady = false
        job.holder = holder
        job.leaseUntilMs = nowMs + this.#leaseMs
        return { id: job.id, attempt: ++job.attempt, fence: ++job.fence }
      })
  }

  renew(holder: string, nowMs: number): ReadonlyMap<string, number> {
    const mine = this.#jobs.filter((job) => job.status === 'running' && job.holder === holder)
    for (const job of mine) job.leaseUntilMs = nowMs + this.#leaseMs
    return new Map(mine.map(({ id, fence }) => [id, fence]))
  }

  finish({ id, fence }: ClaimedJob, outcome: Outcome, nowMs: number): boolean {
    const job = this.#get(id)
    const isKept = job.status === 'running' && job.fence === fence
    if (isKept) this.#end(job, outcome, nowMs)
    if (job.key !== null) this.#promote(job.key)
    return isKept
  }

  recover(nowMs: number, retries: number): number {
    const expired = this.#jobs.filter((job) => job.status === 'running' && job.leaseUntilMs <= nowMs)
    for (const job of expired) {
      const isOver = job.attempt >= Math.max(retries + 1, this.#crashAttempts)
      this.#end(job, isOver ? { kind: 'dead', error: '' } : { kind: 'failed', retryAtMs: nowMs, error: '' }, nowMs)
      if (job.key !== null) this.#promote(job.key)
    }
    return expired.length
  }

  cancel(id: string, nowMs: number): 'changed' | 'refused' {
    const job = this.#get(id)
    if (isFinished(job)) return 'refused'
    job.fence++
    this.#end(job, { kind: 'dead', error: '' }, nowMs)
    if (job.key !== null) this.#promote(job.key)
    return 'changed'
  }

  retry(id: string, nowMs: number): 'changed' | 'refused' {
    const job = this.#get(id)
    if (job.status === 'done' || job.status === 'running') return 'refused'
    if (job.status === 'dead') {
      const isTaken = this.#jobs.some(
        (one) => job.uniqueKey !== null && one.uniqueKey === job.uniqueKey && !isFinished(one),
      )
      if (isTaken) return 'refused'
      Object.assign(job, { status: 'waiting', attempt: 0, isReady: job.key === null })
    }
    job.runAtMs = nowMs
    if (job.key !== null) {
      // Before the later ones that wait, also for another attempt.
      for (const one of this.#unfinished(job.key)) one.isReady = false
      this.#promote(job.key)
    }
    return 'changed'
  }

  /** What holds whatever has happened. */
  expectInvariants(): void {
    for (const key of new Set(this.#jobs.map((job) => job.key))) {
      if (key === null) continue
      const unfinished = this.#unfinished(key)
      // One at a time, and always one that can be next: the first.
      expect(unfinished.filter(({ status, isReady }) => status === 'running' || isReady)).toHaveLength(
        Math.min(1, unfinished.length),
      )
      if (unfinished.every(({ status }) => status !== 'running') && unfinished[0])
        expect(unfinished[0].isReady).toBe(true)
    }
    for (const job of this.#jobs) expect(job.holder === null).toBe(job.status !== 'running')
  }

  #get(id: string): Job {
    return this.#jobs.find((job) => job.id === id) as Job
  }

  #unfinished(key: string): Job[] {
    return this.#jobs.filter((job) => job.key === key && !isFinished(job))
  }

  #end(job: Job, outcome: Outcome, nowMs: number): void {
    job.holder = null
    job.isReady = false
    if (outcome.kind === 'done' || outcome.kind === 'dead') {
      job.status = outcome.kind
      return
    }
    job.isReady = job.key === null
    job.runAtMs = outcome.retryAtMs ?? nowMs
    const isReturned = outcome.kind === 'returned'
    job.status = isReturned && job.attempt === 1 ? 'waiting' : 'failed'
    if (isReturned) job.attempt--
  }

  #promote(key: string): void {
    const unfinished = this.#unfinished(key)
    if (unfinished.some(({ status, isReady }) => isReady || status === 'running')) return
    const [first] = unfinished
    if (first) first.isReady = true
  }
}
