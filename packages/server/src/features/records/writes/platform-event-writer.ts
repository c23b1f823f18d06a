/**
 * Appends events to the change log of a static namespace, under a table that does not exist: what readers of the log
 * learn if and only if the transaction commits. The feature that owns the events decides what they are.
 */
import { randomUUID } from 'node:crypto'
import type { Database, DatabaseAddress, Transaction } from '../../../engines/sql/sql.ts'
import { createAppendChange } from '../changes/changes.ts'
import { insertVersion } from '../version.ts'

/** Appends an event, which the log has as the `after` of a change with an id of its own. */
export type PlatformEventWriter = (tx: Transaction, event: object) => Promise<void>

export function createPlatformEventWriter(deps: {
  readonly log: { readonly namespace: string; readonly table: string }
  /** The database of the namespace. */
  readonly database: Database
  /** Called after the commit. */
  readonly onCommitted: (address: DatabaseAddress, database: Database) => void
  readonly nowMs: () => number
}): PlatformEventWriter {
  const { log, database, onCommitted, nowMs } = deps
  const { namespace, table } = log
  const address: DatabaseAddress = { namespace, instanceId: null }
  const append = createAppendChange({ namespace, name: table, perInstance: false }, database.dialect)
  return async (tx, event) => {
    const atMs = nowMs()
    const id = randomUUID()
    const change = { id, before: null, after: null, afterText: JSON.stringify(event), version: insertVersion(atMs) }
    tx.append(append(change, id, atMs))
    tx.afterCommit(() => onCommitted(address, database))
  }
}
