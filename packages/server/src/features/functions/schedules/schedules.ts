/**
 * Schedules: the next run of each is stored, and becomes a job in the transaction that moves it on. So a run is neither
 * lost by a restart nor started by two nodes; the job's key lets no two runs of a schedule overlap.
 */
import type { Cron } from 'croner'
import { type Clock, waitOn } from '../../../base/clock.ts'
import type { Log } from '../../../base/log.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import {
  scheduleLateMs,
  schedulePollMs,
  scheduleRunsDueMax,
  scheduleWaitingMax,
} from '../../../limits/function-jobs.ts'
import type { NewJob } from '../jobs/job.ts'
import type { JobStore } from '../jobs/job-store.ts'
import type { JobTables } from '../jobs/migrations.ts'

export interface Schedule {
  readonly name: string
  /** Five fields, or six with seconds first. */
  readonly cron: string
  /** UTC if null. */
  readonly tz: string | null
  /** Of runs that were due while no server ran. */
  readonly missed: 'skip' | 'run-once'
}

export interface ScheduleTimes {
  readonly name: string
  readonly nextMs: number
  readonly lastMs: number | null
  /** The job of the last run. */
  readonly lastJob: string | null
}

export interface Schedules {
  /** Takes other schedules into use. One whose pattern has changed continues at the next time of the new pattern. */
  configure(declared: readonly Schedule[]): Promise<void>
  start(): void
  stop(): Promise<void>
  /** Makes jobs of what is due now, as the started schedules do by themselves. */
  runDue(): Promise<void>
  times(): Promise<readonly ScheduleTimes[]>
}

export interface SchedulesDeps {
  readonly tables: JobTables
  readonly store: JobStore
  /** Called with the jobs that were added. */
  readonly onAdded: (jobs: readonly NewJob[]) => void
  readonly clock: Clock
  readonly log: Log
}

interface Declared {
  readonly schedule: Schedule
  readonly cron: Cron
}

interface Row {
  readonly function: string
  readonly pattern: string
  readonly next_at: number | string
  readonly last_at: number | string | null
  readonly last_job: string | null
}

async function declare(schedule: Schedule): Promise<Declared> {
  const { cron, tz } = schedule
  const { Cron } = await import('croner')
  return { schedule, cron: new Cron(cron, { paused: true, ...(tz === null ? { utcOffset: 0 } : { timezone: tz }) }) }
}

const patternOf = ({ cron, tz }: Schedule): string => JSON.stringify([cron, tz])

/** Never runs again. */
const neverMs = Number.MAX_SAFE_INTEGER

/** The first time of the pattern after a time. */
const nextMsOf = (cron: Cron, afterMs: number): number => cron.nextRun(new Date(afterMs))?.getTime() ?? neverMs

interface Due {
  /** The times that run now. */
  readonly runs: readonly number[]
  readonly nextMs: number
  /** Whether times were due so long ago that nothing ran then. */
  readonly isMissed: boolean
}

/** What is due of a schedule whose next run was stored as `nextMs`. */
function dueOf({ missed }: Schedule, cron: Cron, nextMs: number, nowMs: number): Due {
  const isMissed = nowMs - nextMs > scheduleLateMs
  const times: number[] = []
  let atMs = nextMs
  for (; atMs <= nowMs && times.length < scheduleRunsDueMax; atMs = nextMsOf(cron, atMs)) times.push(atMs)
  if (atMs <= nowMs) atMs = nextMsOf(cron, nowMs)
  if (!isMissed) return { runs: times, nextMs: atMs, isMissed }
  return { runs: missed === 'skip' ? [] : times.slice(-1), nextMs: atMs, isMissed }
}

async function addRun(
  tx: Transaction,
  { tables, store, clock }: SchedulesDeps,
  { name, atMs }: { readonly name: string; readonly atMs: number },
): Promise<NewJob | null> {
  const [waiting] = await tx.all<{ count: unknown }>(
    sql`SELECT count(*) AS count FROM ${tables.jobs} WHERE function = ${name} AND key = ${name} AND finished_at IS NULL`,
  )
  if (Number(waiting?.count) >= scheduleWaitingMax) return null
  const job: NewJob = {
    id: `${name}-${new Date(atMs).toISOString()}`,
    function: name,
    kind: 'schedule',
    key: name,
    uniqueKey: null,
    input: JSON.stringify({ scheduledAt: new Date(atMs).toISOString() }),
    runAtMs: clock.now(),
    depth: 1,
  }
  await store.add(tx, [job])
  return job
}

/** Turns the due runs of one schedule into jobs; null where another node does. */
const runDue = (deps: SchedulesDeps, known: Declared): Promise<readonly NewJob[] | null> => {
  const { tables, store, clock, log } = deps
  const { database, schedules } = tables
  const { name } = known.schedule
  return database.write(async (tx) => {
    await store.lockKeys(tx)
    const [row] = await tx.all<Row>(sql`SELECT function, pattern, next_at, last_at, last_job FROM ${schedules}
      WHERE function = ${name}${database.dialect.skipLocked}`)
    const nowMs = clock.now()
    if (!row || row.pattern !== patternOf(known.schedule) || Number(row.next_at) > nowMs) return null
    const { runs, nextMs, isMissed } = dueOf(known.schedule, known.cron, Number(row.next_at), nowMs)
    const since = new Date(Number(row.next_at)).toISOString()
    if (isMissed)
      tx.afterCommit(() =>
        log.info('functions.schedule_missed', { function: name, since, missed: known.schedule.missed }),
      )
    const added: NewJob[] = []
    for (const atMs of runs) {
      const job = await addRun(tx, deps, { name, atMs })
      if (job) added.push(job)
    }
    const last = added.at(-1)
    const lastColumns = last ? sql`, last_at = ${runs.at(-1) ?? nowMs}, last_job = ${last.id}` : sql``
    await tx.run(sql`UPDATE ${schedules} SET next_at = ${nextMs}${lastColumns} WHERE function = ${name}`)
    return added
  })
}

export function createSchedules(deps: SchedulesDeps): Schedules {
  const { tables, onAdded, clock, log } = deps
  const { database, schedules } = tables
  let declared = new Map<string, Declared>()
  let isStarted = false
  let step: Promise<unknown> = Promise.resolve()
  let isStopped = false
  let hasFailed = false

  const rows = (): Promise<Row[]> =>
    database.all<Row>(sql`SELECT function, pattern, next_at, last_at, last_job FROM ${schedules}`)

  /** Runs what is due; returns when the next schedule is. */
  async function runAllDue(): Promise<number> {
    if (declared.size === 0) return neverMs
    let firstMs = neverMs
    for (const row of await rows()) {
      const known = declared.get(row.function)
      if (!known) continue
      if (Number(row.next_at) > clock.now()) {
        firstMs = Math.min(firstMs, Number(row.next_at))
        continue
      }
      const added = await runDue(deps, known)
      if (!added) continue
      if (added.length > 0) onAdded(added)
      firstMs = clock.now()
    }
    return firstMs
  }

  async function loop(): Promise<void> {
    while (!isStopped) {
      let nextMs = neverMs
      try {
        const due = runAllDue()
        step = due.catch(() => undefined)
        nextMs = await due
        hasFailed = false
      } catch (error) {
        if (!hasFailed) log.warn('functions.schedule_failed', { error })
        hasFailed = true
      }
      const waitMs = Math.min(schedulePollMs, nextMs - clock.now())
      if (!isStopped && waitMs > 0) await waitOn(clock, waitMs)
    }
  }

  return {
    async configure(next) {
      const nowMs = clock.now()
      const all = await Promise.all(next.map(declare))
      declared = new Map(all.map((one) => [one.schedule.name, one]))
      const known = new Map((await rows()).map((row) => [row.function, row.pattern]))
      await database.write(async (tx) => {
        for (const name of known.keys())
          if (!declared.has(name)) tx.send(sql`DELETE FROM ${schedules} WHERE function = ${name}`)
        for (const [name, { schedule, cron }] of declared) {
          const pattern = patternOf(schedule)
          if (known.get(name) === pattern) continue
          tx.send(sql`INSERT INTO ${schedules} (function, pattern, next_at) VALUES (${name}, ${pattern}, ${nextMsOf(cron, nowMs)})
            ON CONFLICT (function) DO UPDATE SET pattern = excluded.pattern, next_at = excluded.next_at
            WHERE ${schedules}.pattern <> excluded.pattern`)
        }
      })
    },
    start() {
      if (isStarted) return
      isStarted = true
      void loop()
    },
    async stop() {
      isStopped = true
      await step
    },
    async runDue() {
      while ((await runAllDue()) <= clock.now());
    },
    async times() {
      return (await rows()).map((row) => ({
        name: row.function,
        nextMs: Number(row.next_at),
        lastMs: row.last_at === null ? null : Number(row.last_at),
        lastJob: row.last_job,
      }))
    },
  }
}
