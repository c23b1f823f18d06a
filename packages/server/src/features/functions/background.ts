/**
 * The durable half of functions: jobs, the dispatcher of changes and schedules, wired together. Knows what is declared,
 * and calls `run` for each attempt; processes and endpoints are elsewhere.
 */
import type { Clock } from '../../base/clock.ts'
import { createUuid7 } from '../../base/crypto/ids.ts'
import type { Log } from '../../base/log.ts'
import type { DatabaseAddress, Sql } from '../../engines/sql/sql.ts'
import { unavailable } from '../../errors.ts'
import { functionJobsAdoptMs, functionJobsDrainMs } from '../../limits/function-jobs.ts'
import { housekeepingIntervalMs } from '../../limits/sqlite.ts'
import { userEventsLog } from '../auth-hooks.ts'
import type { HousekeepingJob } from '../feature.ts'
import { transactionJobsTable } from '../transaction-jobs.ts'
import { type Backlog, createBacklog } from './dispatch/backlog.ts'
import { type ChangeHook, createChangeHooks } from './dispatch/change-hooks.ts'
import type { ChangeLogs } from './dispatch/change-logs.ts'
import { Dispatcher } from './dispatch/dispatcher.ts'
import { enqueuedJob } from './dispatch/enqueued.ts'
import { createPositions, type Positions } from './dispatch/positions.ts'
import { jobsOfUserEvent, type UserHook } from './dispatch/user-hooks.ts'
import { createTransactionJobs } from './jobs/enqueued-input.ts'
import type { NewJob } from './jobs/job.ts'
import { createJobAdmin, type JobAdmin } from './jobs/job-admin.ts'
import { type JobFunction, JobRunner, type RunClaimed } from './jobs/job-runner.ts'
import { createJobStore, type Enqueued, type JobStore } from './jobs/job-store.ts'
import { functionsNamespace, type JobTables, prepareJobTables } from './jobs/migrations.ts'
import { createSchedules, type Schedule, type Schedules } from './schedules/schedules.ts'

/** A function with jobs, and the name by which they are enqueued if it is a queue. */
export interface BackgroundFunction extends JobFunction {
  readonly kind: NewJob['kind']
  readonly queue: string | null
  /** Whether the tables of jobs are created for its first job only. */
  readonly isOnDemand?: boolean
}

/** What the code in force declares. */
export interface Declared {
  readonly functions: ReadonlyMap<string, BackgroundFunction>
  readonly hooks: readonly ChangeHook[]
  readonly userHooks: readonly UserHook[]
  readonly schedules: readonly Schedule[]
}

export interface BackgroundDeps {
  readonly sql: Sql
  readonly logs: ChangeLogs
  readonly run: RunClaimed
  readonly clock: Clock
  readonly log: Log
  readonly random?: () => number
}

/** The parts that exist once functions are declared. */
interface Parts {
  readonly tables: JobTables
  readonly store: JobStore
  readonly admin: JobAdmin
  readonly backlog: Backlog
  readonly positions: Positions
  readonly runner: JobRunner
  readonly dispatcher: Dispatcher
  readonly schedules: Schedules
}

type Namespaces = ReadonlyMap<string, { readonly instance: boolean }>

const nothing: Declared = { functions: new Map(), hooks: [], userHooks: [], schedules: [] }

export class Background {
  readonly #deps: BackgroundDeps
  #parts: Parts | null = null
  #opening: Promise<Parts> | null = null
  #declared: Declared = nothing
  #namespaces: Namespaces = new Map()
  #onDemand: Promise<Parts> | null = null
  #isStarted = false

  constructor(deps: BackgroundDeps) {
    this.#deps = deps
  }

  get housekeeping(): readonly HousekeepingJob[] {
    const trim = {
      name: 'functions.trim',
      intervalMs: housekeepingIntervalMs,
      run: (signal: AbortSignal) => this.trim(signal),
    }
    // Where no other process writes, no other one adds jobs.
    if (this.#deps.sql.pauseWrites !== null) return [trim]
    const adopt = async (): Promise<void> => void (await this.findParts())
    return [trim, { name: 'functions.adopt', intervalMs: functionJobsAdoptMs, perNode: true, run: adopt }]
  }

  get declared(): Declared {
    return this.#declared
  }

  /** Null until functions are declared or a job was added. */
  get parts(): Omit<Parts, 'backlog' | 'positions'> | null {
    return this.#parts
  }

  /**
   * Takes other functions into use. Without any, and where there never were some, nothing is created. `namespaces` are
   * those that are served.
   */
  async configure(declared: Declared, namespaces: Namespaces): Promise<void> {
    this.#declared = declared
    this.#namespaces = namespaces
    const isNeeded = [...declared.functions.values()].some(({ isOnDemand }) => !isOnDemand)
    if (this.#parts || isNeeded || (await this.#hasJobs())) await this.#apply(declared, namespaces)
  }

  /** The parts, which are created for the first job that the platform adds by itself. */
  async openParts(): Promise<Pick<Parts, 'store' | 'admin' | 'runner' | 'tables'>> {
    if (this.#parts) return this.#parts
    this.#onDemand ??= this.#apply(this.#declared, this.#namespaces).finally(() => {
      this.#onDemand = null
    })
    return this.#onDemand
  }

  /** The parts; null while no functions are declared and no node has added a job. */
  async findParts(): Promise<Pick<Parts, 'admin' | 'tables'> | null> {
    if (!this.#parts && (await this.#hasJobs())) await this.openParts()
    return this.#parts
  }

  async #hasJobs(): Promise<boolean> {
    return (await this.#deps.sql.namespaces()).includes(functionsNamespace)
  }

  /** Takes them into use. */
  async #apply(declared: Declared, namespaces: Namespaces): Promise<Parts> {
    this.#opening ??= this.#open().catch((error) => {
      this.#opening = null
      throw error
    })
    const parts = await this.#opening
    const { clock, log } = this.#deps
    const jobsOf = createChangeHooks({ hooks: declared.hooks, nowMs: () => clock.now(), log })
    await parts.dispatcher.configure({
      namespaces: dispatchedNamespaces(declared, namespaces),
      jobsOf: (change, namespace) => {
        if (change.table === userEventsLog.table) return jobsOfUserEvent(change, declared.userHooks, clock.now())
        if (change.table !== transactionJobsTable) return jobsOf(change, namespace)
        const job = enqueuedJob(change)
        return job ? [job] : []
      },
    })
    await parts.schedules.configure(declared.schedules)
    this.#parts = parts
    if (this.#isStarted) await this.#begin(parts)
    parts.runner.wake(declared.functions.keys())
    return parts
  }

  /** Begins to run jobs. To be called once the server can serve the requests of functions. */
  async start(): Promise<void> {
    this.#isStarted = true
    if (this.#parts) await this.#begin(this.#parts)
  }

  /** Throws 503 while there are too many jobs. */
  async requireRoom(): Promise<Pick<Parts, 'store' | 'runner' | 'backlog'>> {
    const parts = this.#parts
    if (!parts || (await parts.backlog.isFull())) throw unavailable(1, 'Too many jobs are waiting')
    return parts
  }

  /** Adds a job of a function. Throws 503 while there are too many. */
  async enqueue(job: NewJob): Promise<Enqueued> {
    const parts = await this.requireRoom()
    const [enqueued] = await parts.store.enqueue([job])
    if (enqueued?.isNew) this.#onAdded(parts, [job])
    return enqueued as Enqueued
  }

  /** See `transaction-jobs`. */
  readonly checkJobs = createTransactionJobs(this, () => this.#deps.clock.now())

  /** The function that a queue's name, or its own, stands for. */
  findFunction(name: string): BackgroundFunction | null {
    const { functions } = this.#declared
    for (const declared of functions.values()) if (declared.queue === name) return declared
    return functions.get(name) ?? null
  }

  /** See `Dispatcher`. */
  enter(address: DatabaseAddress): Promise<void> | null | false {
    return this.#parts?.dispatcher.enter(address) ?? false
  }

  leave(address: DatabaseAddress): void {
    this.#parts?.dispatcher.leave(address)
  }

  /** The snapshot up to which the changes of a database have become jobs; null where no function waits for them. */
  async findReadUpTo(address: DatabaseAddress): Promise<string | null> {
    return (await this.#parts?.positions.find(address))?.position.from ?? null
  }

  async findRepeatable(ids: readonly string[]): Promise<ReadonlySet<string>> {
    return (await this.#parts?.admin.findRepeatable(ids)) ?? new Set()
  }

  /** Starts no more jobs of a function until it is resumed. */
  async pause(name: string): Promise<void> {
    await this.#parts?.admin.pause(name)
  }

  /** Deletes old jobs. */
  async trim(signal: AbortSignal): Promise<void> {
    await this.#parts?.admin.trim(signal)
  }

  /** Dispatches what was written, and runs the jobs that are due by the clock until none is left. */
  async finishDue(): Promise<void> {
    const parts = this.#parts
    if (!parts || !this.#isStarted) return
    const { schedules, dispatcher, runner } = parts
    for (let ended = -1; ended !== endedOf(runner); ) {
      ended = endedOf(runner)
      await schedules.runDue()
      await dispatcher.finishDue()
      await runner.finishDue()
    }
  }

  /** When the next job or schedule becomes due; null if none is known. To be called after `finishDue`. */
  async nextDueMs(): Promise<number | null> {
    const parts = this.#parts
    if (!parts) return null
    const times = (await parts.schedules.times()).map(({ nextMs }) => nextMs)
    const nextMs = Math.min(parts.runner.nextDueMs, ...times)
    return Number.isSafeInteger(nextMs) ? nextMs : null
  }

  /** Starts no more jobs and waits for those under way, within a bounded time; the rest runs elsewhere or later. */
  async stop(): Promise<void> {
    const parts = this.#parts
    this.#isStarted = false
    if (!parts) return
    await parts.schedules.stop()
    await parts.dispatcher.stop()
    await parts.runner.stop(functionJobsDrainMs)
  }

  async #begin({ runner, schedules }: Parts): Promise<void> {
    if (runner.isStarted) return
    await runner.start()
    schedules.start()
  }

  #onAdded({ runner, backlog }: Pick<Parts, 'runner' | 'backlog'>, jobs: readonly NewJob[]): void {
    const nowMs = this.#deps.clock.now()
    const due = new Set<string>()
    for (const job of jobs) {
      if (job.runAtMs <= nowMs) due.add(job.function)
      else runner.wakeAt(job.function, job.runAtMs)
    }
    backlog.add(jobs)
    if (due.size > 0) runner.wake(due)
  }

  async #open(): Promise<Parts> {
    const { sql, logs, run, clock, log, random } = this.#deps
    const tables = await prepareJobTables(sql)
    const { database } = tables
    const holder = createUuid7(clock)()
    const isSole = database.dialect.follow === null
    const store = createJobStore(tables, clock)
    const admin = createJobAdmin(tables, clock)
    const backlog = createBacklog({ admin, clock, log })
    const positions = createPositions(tables, { holder, isSole, clock })
    const functions = () => this.#declared.functions
    const runner = new JobRunner({ store, functions, run, holder, isSole, clock, log, ...(random ? { random } : {}) })
    const onAdded = (jobs: readonly NewJob[]): void => this.#onAdded({ runner, backlog }, jobs)
    const { keepsInstancesApart } = sql
    const dispatcher = new Dispatcher({
      logs,
      positions,
      database,
      store,
      backlog,
      keepsInstancesApart,
      onAdded,
      clock,
      log,
    })
    const schedules = createSchedules({ tables, store, onAdded, clock, log })
    return { tables, store, admin, backlog, positions, runner, dispatcher, schedules }
  }
}

/** Those with hooks, also of files, that of the users, and those in whose transactions jobs can be enqueued. */
function dispatchedNamespaces({ functions, hooks, userHooks }: Declared, namespaces: Namespaces): Namespaces {
  const hasQueues = [...functions.values()].some(({ queue }) => queue !== null)
  const hooked = new Set(hooks.map(({ namespace }) => namespace))
  const dispatched = new Map([...namespaces].filter(([namespace]) => hasQueues || hooked.has(namespace)))
  // It has a log also where the configuration does not serve it.
  if (userHooks.length > 0) dispatched.set(userEventsLog.namespace, { instance: false })
  // Files are of no namespace that is served.
  for (const namespace of hooked.difference(namespaces)) dispatched.set(namespace, { instance: false })
  return dispatched
}

/** Attempts that have ended since the start. */
const endedOf = ({ counts: { done, failed, dead, lost } }: JobRunner): number => done + failed + dead + lost
