/** The housekeeping of records: trims change logs and stored responses, of instances only if they were written. */
import type { Clock } from '../../../base/clock.ts'
import type { DatabaseAddress, Sql } from '../../../engines/sql/sql.ts'
import { idempotencyRetentionMs } from '../../../limits/api.ts'
import type { Namespaces } from '../resolve-table.ts'
import { responsesTable } from '../writes/idempotency.ts'
import { type LogBounds, trimByTime, trimLog } from './trim.ts'

export interface TrimmerDeps {
  readonly sql: Sql
  /** All stored namespaces, served or not. */
  readonly storedNamespaces: () => Namespaces
  /** Bounds of each change log. */
  readonly changes: () => LogBounds
  readonly clock: Clock
}

export interface Trimmer {
  /** To be called for each write: the next run includes the instance that it wrote. */
  markWritten(address: DatabaseAddress): void
  /** Deletes expired changes and stored responses; starts no step after the signal. */
  run(signal: AbortSignal): Promise<void>
}

export function createTrimmer({ sql, storedNamespaces, changes, clock }: TrimmerDeps): Trimmer {
  /** Instances written since the last run, which is seconds ago. */
  const written = new Map<string, DatabaseAddress>()

  async function trim(address: DatabaseAddress, signal: AbortSignal): Promise<void> {
    const database = sql.database(address)
    const { namespace } = address
    const nowMs = clock.now()
    await trimLog(database, namespace, changes(), { nowMs, signal })
    const responses = responsesTable(namespace, database.dialect)
    await trimByTime(database, responses, { beforeMs: nowMs - idempotencyRetentionMs, nowMs, signal })
  }

  return {
    markWritten(address) {
      const { namespace, instanceId } = address
      if (instanceId !== null && sql.keepsInstancesApart) written.set(`${namespace}\n${instanceId}`, address)
    },
    async run(signal) {
      const instances = [...written.values()]
      written.clear()
      for (const [namespace, { instance }] of storedNamespaces())
        if (!instance || !sql.keepsInstancesApart) await trim({ namespace, instanceId: null }, signal)
      for (const address of instances) await trim(address, signal)
    },
  }
}
