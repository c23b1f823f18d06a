/**
 * Commits a group of operations in one transaction of a SQLite file; each operation is atomic. `writer` forms the
 * groups and acknowledges them.
 */
import { startSlice } from '../../base/concurrency/slices.ts'
import type { LogEpoch } from '../disk/log-epoch.ts'
import type { Connection } from './connection.ts'
import { Appends, SqliteTransaction, type Work } from './transaction.ts'

/** A caller that waits for the sync. */
export interface Waiter {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

export interface Operation extends Waiter {
  readonly work: Work<unknown>
}

interface Done {
  readonly operation: Operation
  readonly tx: SqliteTransaction
  readonly result: unknown
}

interface Refused {
  readonly operation: Operation
  readonly error: unknown
}

export interface Outcome {
  readonly done: readonly Done[]
  readonly refused: readonly Refused[]
  /** Operations of the group that began in a first attempt, and did not run in the second one. */
  readonly rest: readonly Operation[]
}

/** The operations of a group: those that were taken from the queue, in order. */
export interface Group {
  readonly taken: readonly Operation[]
  /** Takes another one. Undefined if the queue is empty or the group is complete. */
  next(): Operation | undefined
}

/** What a group is committed to. */
export interface GroupTarget {
  readonly connection: Connection
  /** Stamps the first group that changes anything after a checkpoint. */
  readonly epoch?: LogEpoch | undefined
}

/** SQLite rolled back the transaction by itself (full disk, failed read), and with it the group. */
class GroupLost extends Error {
  constructor(cause: unknown) {
    super('The transaction is gone', { cause })
  }
}

/** An operation threw after it had written, and there is no savepoint to roll back to. */
class NotIsolated extends Error {}

/**
 * Most operations that fail do so before they write, so a group runs without savepoints, which would cost a full-text
 * index its batching. If an operation throws after it has written, the group is rolled back and runs again with a
 * savepoint per operation. Rejects if nothing of the group was committed.
 */
export async function commitGroup(target: GroupTarget, group: Group): Promise<Outcome> {
  try {
    return await runGroup(target, () => group.next(), false)
  } catch (error) {
    abandon(target.connection)
    if (!(error instanceof NotIsolated)) throw error
  }
  const { taken } = group
  try {
    let began = 0
    const outcome = await runGroup(target, () => taken[began++], true)
    return { ...outcome, rest: taken.slice(outcome.done.length + outcome.refused.length) }
  } catch (error) {
    abandon(target.connection)
    throw error
  }
}

function abandon(connection: Connection): void {
  try {
    connection.exec('ROLLBACK')
  } catch {
    // SQLite has already rolled back.
  }
}

/**
 * Runs and commits what `next` gives, which is the group. It ends with the event loop's time slice, so that neither its
 * operations nor its commit, whose time grows with the pages to write, delay other requests.
 */
async function runGroup(
  { connection, epoch }: GroupTarget,
  next: () => Operation | undefined,
  isolated: boolean,
): Promise<Outcome> {
  const done: Done[] = []
  const refused: Refused[] = []
  const appends = new Appends(connection)
  const isOver = startSlice()
  connection.exec('BEGIN IMMEDIATE')
  while (done.length + refused.length === 0 || !isOver()) {
    const operation = next()
    if (!operation) break
    try {
      done.push(await attempt(connection, operation, isolated ? null : appends))
    } catch (error) {
      if (error instanceof NotIsolated) throw error
      if (error instanceof GroupLost) throw error.cause
      refused.push({ operation, error })
    }
  }
  appends.flush()
  const changed = done.some(({ tx }) => tx.changed)
  if (changed) epoch?.stamp()
  connection.exec('COMMIT')
  if (changed) epoch?.committed()
  return { done, refused, rest: [] }
}

/**
 * Runs one operation in the open transaction; `shared` are the appends of the group, null for an isolated operation. A
 * throw undoes the operation or aborts the group.
 */
async function attempt(connection: Connection, operation: Operation, shared: Appends | null): Promise<Done> {
  const isolated = shared === null
  const appends = shared ?? new Appends(connection)
  const tx = new SqliteTransaction(connection, appends)
  if (isolated) connection.exec('SAVEPOINT operation')
  try {
    const result = await operation.work(tx)
    tx.finish()
    if (isolated) {
      appends.flush()
      connection.exec('RELEASE operation')
    }
    return { operation, tx, result }
  } catch (error) {
    tx.end()
    if (!connection.inTransaction) throw new GroupLost(error)
    if (isolated) rollBackOperation(connection, error)
    else if (tx.wrote) throw new NotIsolated()
    throw error
  }
}

function rollBackOperation(connection: Connection, because: unknown): void {
  try {
    connection.exec('ROLLBACK TO operation')
    connection.exec('RELEASE operation')
  } catch {
    throw new GroupLost(because)
  }
}
