/**
 * Writes records of platform tables, which are read-only in the records API. Such a write is a change like any other:
 * it is appended to the change log, updates the totals and wakes the change feed. The feature that owns the table
 * decides what is written.
 */
import type { Database, DatabaseAddress, Transaction } from '../../../engines/sql/sql.ts'
import type { Table } from '../../../query/table.ts'
import { changeOf } from '../changes/changes.ts'
import { createTableRows, type RecordRow } from '../rows.ts'
import type { OnCommitted } from './write-context.ts'

/** Replaces the record `before` with `after` in the transaction; null means that there is no record. */
export type PlatformRecordWriter = (tx: Transaction, before: RecordRow | null, after: RecordRow | null) => Promise<void>

/** The writer for one table of a static namespace. `requestId` groups the changes of one transaction. */
export function createPlatformRecordWriter(deps: {
  table: Table
  /** The database of the table's namespace. */
  database: Database
  committed: OnCommitted
  requestId: () => string
  nowMs: () => number
}): PlatformRecordWriter {
  const { table, database, committed, requestId, nowMs } = deps
  const rows = createTableRows(table, database.dialect)
  const address: DatabaseAddress = { namespace: table.namespace, instanceId: null }
  const requests = new WeakMap<Transaction, string>()

  function requestOf(tx: Transaction): string {
    const known = requests.get(tx) ?? requestId()
    requests.set(tx, known)
    return known
  }

  return async (tx, before, after) => {
    const id = (after ?? before)?.id
    if (typeof id !== 'string') return
    if (before && after) {
      const changed = Object.keys(after).filter((name) => after[name] !== before[name])
      if (changed.every((name) => name === 'updatedAt')) return
      await tx.run(rows.update(after, changed))
    } else await tx.run(after ? rows.insert(after) : rows.deleteById(id))
    const change = changeOf(table, id, before, after)
    await tx.run(rows.appendChange(change, requestOf(tx), nowMs()))
    tx.afterCommit(() => committed({ address, database }, change))
  }
}
