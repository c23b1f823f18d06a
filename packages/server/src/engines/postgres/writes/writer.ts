/**
 * Writes on PostgreSQL. A write that names its row shares a transaction with others of its table; any other has one of
 * its own. Repeats a write that conflicts with another, finds an advisory lock taken, or cannot share a transaction.
 */
import {
  advisoryLockAttemptsMax,
  advisoryLockWaitersMax,
  advisoryLockWaitMs,
  postgresMigrationMs,
  postgresRetriesMax,
  statementAnswerMs,
} from '../../../limits/postgres.ts'
import { EngineError } from '../../sql/error.ts'
import type { Transaction } from '../../sql/sql.ts'
import type { Connections } from '../connections.ts'
import type { PreparedConnection } from '../prepared-connection.ts'
import type { Statements } from '../statements.ts'
import { begin, beginMigration, isCommitted, rollBack } from './boundaries.ts'
import { createLockQueue, LockContention, type Locks } from './lock-queue.ts'
import { NeedsOwnTransaction } from './shared-transaction.ts'
import { createSharedWrites } from './shared-writes.ts'
import { PostgresTransaction } from './transaction.ts'

const isRetryable = (error: unknown): boolean => error instanceof EngineError && error.kind === 'conflict'

/** Target of a write. */
export interface WriteTarget {
  readonly instanceId: string | null
  /** Names the table, or the namespace, whose share of the connections it uses. */
  readonly key: string
  /** See `WriteOptions`. */
  readonly row: string | null | undefined
  readonly isMigration: boolean
}

export interface PostgresWriter {
  /** See `Database`. */
  write<T>(target: WriteTarget, work: (tx: Transaction) => Promise<T>): Promise<T>
}

type Work<T> = (tx: Transaction) => Promise<T>
type AloneTarget = Pick<WriteTarget, 'instanceId' | 'isMigration'>

export function createPostgresWriter(connections: Connections, statements: Statements): PostgresWriter {
  const lockQueue = createLockQueue({
    waiting: advisoryLockWaitersMax,
    attempts: advisoryLockAttemptsMax,
    waitMs: advisoryLockWaitMs,
  })

  /** Runs a write in a transaction of its own. Its first statement goes out with BEGIN, its last with COMMIT. */
  async function runAlone<T>(
    line: PreparedConnection,
    { instanceId, isMigration }: AloneTarget,
    locks: Locks,
    work: Work<T>,
  ): Promise<T> {
    const answerMs = isMigration ? postgresMigrationMs : statementAnswerMs
    const tx = new PostgresTransaction(
      (statement) => line.send(statements.prepare(statement, instanceId, answerMs), 'tick'),
      // A change of tables waits for locks without a bound, in the database.
      isMigration ? () => undefined : locks.take,
    )
    tx.keep(line.send(begin, 'tick'))
    if (isMigration) tx.keep(line.send(beginMigration, 'tick'))
    let result: T
    try {
      result = await work(tx)
      // Work that caught the refusal of a lock has run without it.
      if (locks.isContended) throw new LockContention('Another write has the lock')
    } catch (error) {
      tx.end()
      await rollBack(line)
      throw await tx.failure(error)
    }
    tx.end()
    if (!(await isCommitted(line))) throw await tx.failure(new Error('The transaction was undone'))
    for (const hook of tx.hooks) hook()
    return result
  }

  const shared = createSharedWrites({
    connections,
    statements,
    runAlone: (line, { instanceId, locks, work, resolve, reject }) =>
      runAlone(line, { instanceId, isMigration: false }, locks, work).then(resolve, reject),
  })

  const runShared = <T>(
    { instanceId, key }: WriteTarget,
    row: string | null,
    locks: Locks,
    work: Work<T>,
  ): Promise<T> =>
    new Promise((resolve, reject) => {
      shared.add({ instanceId, key, row, locks, work, resolve: resolve as (result: unknown) => void, reject })
    })

  return {
    async write(target, work) {
      const locks = lockQueue.open()
      let row = target.row
      try {
        for (let tries = 1; ; ) {
          try {
            if (row !== undefined) return await runShared(target, row, locks, work)
            return await connections.withOwn(target.key, (line) => runAlone(line, target, locks, work))
          } catch (error) {
            if (locks.isContended) {
              await locks.wait()
              continue
            }
            if (error instanceof NeedsOwnTransaction) {
              row = undefined
              continue
            }
            if (!isRetryable(error)) throw error
            if (tries++ >= postgresRetriesMax)
              throw new EngineError('busy', 'Too many concurrent writes of the same rows', [], error)
          }
        }
      } finally {
        locks.release()
      }
    },
  }
}
