/**
 * Writes records of platform tables, which are read-only in the records API. Such a write is a change like any other:
 * it is appended to the change log, updates the totals and wakes the change feed. The feature that owns the table
 * decides what is written.
 */
import type { Database, DatabaseAddress, Transaction } from '../../../engines/sql/sql.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { complete } from '../../../query/computed/computed-fields.ts'
import type { Table } from '../../../query/table.ts'
import { changeOf } from '../changes/changes.ts'
import { createTableRows, type RecordRow } from '../rows.ts'
import { insertVersion, nextVersion, takeVersion } from '../version.ts'
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

  async function lockVersion(tx: Transaction, id: string): Promise<number> {
    const [row] = await tx.all<RecordRow>(
      sql`SELECT ${rows.version} FROM ${rows.from} WHERE ${rows.name}."id" = ${id}${database.dialect.forUpdate}`,
    )
    return row ? takeVersion(row) : 0
  }

  return async (tx, before, written) => {
    const after = written && complete(table, written)
    const id = (after ?? before)?.id
    if (typeof id !== 'string') return
    const changed = before && after ? Object.keys(after).filter((name) => after[name] !== before[name]) : []
    if (before && after && changed.every((name) => name === 'updatedAt')) return
    const atMs = nowMs()
    const versionBefore = before ? await lockVersion(tx, id) : 0
    // The ids of platform records are never used again.
    const version = before ? nextVersion(versionBefore, atMs) : insertVersion(atMs)
    if (after) await tx.run(before ? rows.update(after, changed, version) : rows.insert(after, version))
    const change = changeOf(table, id, before, after, version, versionBefore)
    // Before a removal: the log looks up the row's key.
    tx.append(rows.appendChange(change, requestOf(tx), atMs))
    if (!after) await tx.run(rows.deleteById(id))
    tx.afterCommit(() => committed({ address, database }, change))
  }
}
