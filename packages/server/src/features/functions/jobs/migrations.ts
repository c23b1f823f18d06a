/**
 * Tables of jobs, in a database of their own (`_functions`): a job and the position of the log that it came from are
 * written in one transaction.
 */
import { type PlatformStep, platformTable, preparePlatformTables } from '../../../engines/sql/platform-tables.ts'
import type { Database, Sql } from '../../../engines/sql/sql.ts'
import { join, type SqlText, sql } from '../../../engines/sql/sql-text.ts'

/** Configured namespaces cannot start with an underscore. */
export const functionsNamespace = '_functions'

/**
 * `jobs`: every job, finished ones included. `queues`: paused functions. `starts`: recent starts of functions with a
 * rate. `positions`: how far each change log is dispatched. `schedules`: next and last run of each schedule.
 */
const names = ['jobs', 'queues', 'starts', 'positions', 'schedules'] as const
type TableName = (typeof names)[number]

const refOf = (name: TableName) => platformTable(functionsNamespace, name)

export interface JobTables extends Readonly<Record<TableName, SqlText>> {
  readonly database: Database
}

/** Times are milliseconds since 1970. */
const steps: readonly PlatformStep[] = [
  ({ target, logHead, columnTypes }) => {
    const text = { text: columnTypes.text, values: [] }
    const jobs = target(refOf('jobs'))
    return [
      // `seq` is the order of creation, `ready` 1 while the job may be claimed: it waits and is the first of its key.
      sql`CREATE TABLE ${jobs} (${join(logHead, ', ')}, id ${text} NOT NULL UNIQUE, function ${text} NOT NULL,
        kind ${text} NOT NULL, key ${text}, unique_key ${text}, input TEXT NOT NULL, chars BIGINT NOT NULL,
        status ${text} NOT NULL, ready INTEGER NOT NULL, attempt INTEGER NOT NULL, run_at BIGINT NOT NULL,
        lease_until BIGINT, fence BIGINT NOT NULL, holder ${text}, depth INTEGER NOT NULL, created_at BIGINT NOT NULL,
        started_at BIGINT, finished_at BIGINT, error TEXT)`,
      sql`CREATE INDEX "jobs_ready" ON ${jobs} (function, run_at, seq) WHERE ready = 1`,
      sql`CREATE INDEX "jobs_running" ON ${jobs} (function, lease_until) WHERE status = 'running'`,
      sql`CREATE INDEX "jobs_key" ON ${jobs} (function, key, seq) WHERE finished_at IS NULL AND key IS NOT NULL`,
      sql`CREATE UNIQUE INDEX "jobs_unique" ON ${jobs} (function, unique_key)
        WHERE finished_at IS NULL AND unique_key IS NOT NULL`,
      sql`CREATE INDEX "jobs_finished" ON ${jobs} (finished_at, seq) WHERE finished_at IS NOT NULL`,
      sql`CREATE INDEX "jobs_unfinished" ON ${jobs} (seq, chars) WHERE finished_at IS NULL`,
      sql`CREATE INDEX "jobs_function" ON ${jobs} (function, seq)`,
      sql`CREATE INDEX "jobs_status" ON ${jobs} (status, seq)`,
      sql`CREATE TABLE ${target(refOf('queues'))} (function ${text} PRIMARY KEY, paused_at BIGINT NOT NULL)`,
      sql`CREATE TABLE ${target(refOf('starts'))} (function ${text} NOT NULL, at BIGINT NOT NULL)`,
      sql`CREATE INDEX "starts_at" ON ${target(refOf('starts'))} (function, at)`,
      // `version` increases with every advance, which compares it. The row of an instance is removed while it rests.
      sql`CREATE TABLE ${target(refOf('positions'))} (log ${text} PRIMARY KEY, namespace ${text} NOT NULL,
        instance ${text}, position TEXT NOT NULL, version BIGINT NOT NULL, holder ${text}, lease_until BIGINT NOT NULL)`,
      sql`CREATE TABLE ${target(refOf('schedules'))} (function ${text} PRIMARY KEY, pattern ${text} NOT NULL,
        next_at BIGINT NOT NULL, last_at BIGINT, last_job ${text})`,
    ]
  },
  // How far a job has come that is made of steps.
  ({ target }) => [sql`ALTER TABLE ${target(refOf('jobs'))} ADD COLUMN progress TEXT`],
]

/** Creates the tables or migrates them to the current version. Throws if a newer version of the server created them. */
export async function prepareJobTables(engine: Sql): Promise<JobTables> {
  const database = engine.database({ namespace: functionsNamespace, instanceId: null })
  await preparePlatformTables(database, functionsNamespace, 'jobs', steps)
  const { target } = database.dialect
  const tables = Object.fromEntries(names.map((name) => [name, target(refOf(name))]))
  return { database, ...(tables as Record<TableName, SqlText>) }
}
