/**
 * The housekeeping of records: trims change logs and stored responses, of instances only if they were written, and the
 * change logs and results of effects of other features.
 */
import type { Clock } from '../../../base/clock.ts'
import { isEffectKey, trimEffects } from '../../../engines/sql/effects.ts'
import type { DatabaseAddress, Sql } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { responsesTable } from '../../../engines/sql/stored-responses.ts'
import { trimByTime } from '../../../engines/sql/trim-rows.ts'
import { idempotencyRetentionMs } from '../../../limits/api.ts'
import type { Namespaces } from '../resolve-table.ts'
import { type LogBounds, type ReadUpTo, trimLog } from './trim.ts'

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
  /** Bounds of each change log. */
  readonly changes: () => LogBounds
  readonly jobs: JobsOfLogs
  readonly clock: Clock
}

export interface Trimmer {
  /** To be called for each write: the next run includes the instance that it wrote. */
  markWritten(address: DatabaseAddress): void
  /** Includes the change log of another feature's namespace from now on. */
  addLog(namespace: string): void
  /** Includes the results of effects in another feature's namespace from now on. */
  addEffects(namespace: string): void
  /** Deletes expired changes and stored responses; starts no step after the signal. */
  run(signal: AbortSignal): Promise<void>
}

const keyOf = ({ namespace, instanceId }: DatabaseAddress): string => `${namespace}\n${instanceId ?? ''}`

export function createTrimmer(deps: TrimmerDeps): Trimmer {
  const { sql: engine, storedNamespaces, changes, jobs, clock } = deps
  /** Instances written since the last run, which is seconds ago. */
  const written = new Map<string, DatabaseAddress>()
  const logs = new Set<string>()
  const effects = new Set<string>()
  /** Where the next run continues, of databases with more results than one run reads. */
  const effectsAfter = new Map<string, number>()

  async function trimChanges(address: DatabaseAddress, signal: AbortSignal): Promise<void> {
    const readUpTo = await jobs.findReadUpTo(address)
    const nowMs = clock.now()
    await trimLog(engine.database(address), address.namespace, changes(), { nowMs, signal, readUpTo })
  }

  async function trim(address: DatabaseAddress, signal: AbortSignal): Promise<void> {
    await trimChanges(address, signal)
    await trimResponses(address, signal)
  }

  async function trimResponses(address: DatabaseAddress, signal: AbortSignal): Promise<void> {
    const database = engine.database(address)
    const { namespace } = address
    const nowMs = clock.now()
    const responses = responsesTable(namespace, database.dialect)
    const beforeMs = nowMs - idempotencyRetentionMs
    await trimByTime(database, responses, { beforeMs, nowMs, only: sql`NOT ${isEffectKey}`, signal })
    const key = keyOf(address)
    const after = await trimEffects(database, responses, {
      nowMs,
      signal,
      findRepeatable: jobs.findRepeatable,
      after: effectsAfter.get(key) ?? 0,
    })
    if (after > 0) effectsAfter.set(key, after)
    else effectsAfter.delete(key)
  }

  return {
    markWritten(address) {
      if (address.instanceId !== null && engine.keepsInstancesApart) written.set(keyOf(address), address)
    },
    addLog: (namespace) => void logs.add(namespace),
    addEffects: (namespace) => void effects.add(namespace),
    async run(signal) {
      const instances = [...written.values()]
      written.clear()
      for (const [namespace, { instance }] of storedNamespaces())
        if (!instance || !engine.keepsInstancesApart) await trim({ namespace, instanceId: null }, signal)
      for (const address of instances) await trim(address, signal)
      for (const namespace of logs) await trimChanges({ namespace, instanceId: null }, signal)
      for (const namespace of effects) await trimResponses({ namespace, instanceId: null }, signal)
    },
  }
}
