/** The housekeeping of records: trims change logs and stored responses, of instances only if they were written. */
import type { Clock } from '../../../base/clock.ts'
import type { DatabaseAddress, Sql } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { idempotencyRetentionMs } from '../../../limits/api.ts'
import type { Namespaces } from '../resolve-table.ts'
import { isEffectKey, responsesTable } from '../writes/idempotency.ts'
import { type LogBounds, type ReadUpTo, trimByTime, trimLog } from './trim.ts'
import { trimEffects } from './trim-effects.ts'

/** What the trimmer needs to know of the jobs that are made of changes. */
export interface JobsOfLogs {
  /** Up to where the changes of a database have become jobs. */
  findReadUpTo(address: DatabaseAddress): Promise<ReadUpTo>
  /** Those of these jobs that may run again. */
  findRepeatable(ids: readonly string[]): Promise<ReadonlySet<string>>
}

export interface TrimmerDeps {
  readonly sql: Sql
  /** All stored namespaces, served or not. */
  readonly storedNamespaces: () => Namespaces
  /** Namespaces of other features with a change log. */
  readonly platformLogs: () => Iterable<string>
  /** Bounds of each change log. */
  readonly changes: () => LogBounds
  readonly jobs: JobsOfLogs
  readonly clock: Clock
}

export interface Trimmer {
  /** To be called for each write: the next run includes the instance that it wrote. */
  markWritten(address: DatabaseAddress): void
  /** Deletes expired changes and stored responses; starts no step after the signal. */
  run(signal: AbortSignal): Promise<void>
}

export function createTrimmer(deps: TrimmerDeps): Trimmer {
  const { sql: engine, storedNamespaces, platformLogs, changes, jobs, clock } = deps
  /** Instances written since the last run, which is seconds ago. */
  const written = new Map<string, DatabaseAddress>()

  async function trimChanges(address: DatabaseAddress, signal: AbortSignal): Promise<void> {
    const readUpTo = await jobs.findReadUpTo(address)
    const nowMs = clock.now()
    await trimLog(engine.database(address), address.namespace, changes(), { nowMs, signal, readUpTo })
  }

  async function trim(address: DatabaseAddress, signal: AbortSignal): Promise<void> {
    await trimChanges(address, signal)
    const database = engine.database(address)
    const { namespace } = address
    const nowMs = clock.now()
    const responses = responsesTable(namespace, database.dialect)
    const beforeMs = nowMs - idempotencyRetentionMs
    await trimByTime(database, responses, { beforeMs, nowMs, only: sql`NOT ${isEffectKey}`, signal })
    await trimEffects(database, responses, { nowMs, signal, findRepeatable: jobs.findRepeatable })
  }

  return {
    markWritten(address) {
      const { namespace, instanceId } = address
      if (instanceId !== null && engine.keepsInstancesApart) written.set(`${namespace}\n${instanceId}`, address)
    },
    async run(signal) {
      const instances = [...written.values()]
      written.clear()
      for (const [namespace, { instance }] of storedNamespaces())
        if (!instance || !engine.keepsInstancesApart) await trim({ namespace, instanceId: null }, signal)
      for (const address of instances) await trim(address, signal)
      for (const namespace of platformLogs()) await trimChanges({ namespace, instanceId: null }, signal)
    },
  }
}
