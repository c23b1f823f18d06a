/**
 * Writes on PostgreSQL: a transaction each, on a connection of its own. Repeats one that conflicts with another or
 * finds an advisory lock taken.
 */
import {
  advisoryLockAttemptsMax,
  advisoryLockWaitersMax,
  advisoryLockWaitMs,
  postgresMigrationMs,
  postgresRetriesMax,
  statementAnswerMs,
} from '../../limits/postgres.ts'
import { EngineError } from '../sql/error.ts'
import type { Transaction } from '../sql/sql.ts'
import type { Connections } from './connections.ts'
import { createLockQueue, LockContention, type Locks } from './lock-queue.ts'
import type { Prepared } from './prepared-connection.ts'
import type { Statements } from './statements.ts'
import { PostgresTransaction } from './transaction.ts'

const isRetryable = (error: unknown): boolean => error instanceof EngineError && error.kind === 'conflict'

const begin: Prepared = { name: 'begin', text: 'BEGIN', values: [] }
const commit: Prepared = { name: 'commit', text: 'COMMIT', values: [] }
const rollback: Prepared = { name: 'rollback', text: 'ROLLBACK', values: [] }
const beginMigration: Prepared = {
  name: 'migrate',
  text: `SELECT set_config('lock_timeout', '0', true), set_config('statement_timeout', $1, true),
    set_config('idle_in_transaction_session_timeout', $1, true)`,
  values: [String(postgresMigrationMs)],
}

/** Target of a write. */
export interface WriteTarget {
  readonly instanceId: string | null
  /** Names the table, or the namespace, whose share of the connections it uses. */
  readonly key: string
  readonly isMigration: boolean
}

export interface PostgresWriter {
  /** See `Database`. */
  write<T>(target: WriteTarget, work: (tx: Transaction) => Promise<T>): Promise<T>
}

export function createPostgresWriter(connections: Connections, statements: Statements): PostgresWriter {
  const lockQueue = createLockQueue({
    waiting: advisoryLockWaitersMax,
    attempts: advisoryLockAttemptsMax,
    waitMs: advisoryLockWaitMs,
  })

  /** One attempt at a write. Its first statement goes out with BEGIN, its last with COMMIT. */
  async function attempt<T>(target: WriteTarget, locks: Locks, work: (tx: Transaction) => Promise<T>): Promise<T> {
    return connections.withOwn(target.key, async (line) => {
      const answerMs = target.isMigration ? postgresMigrationMs : statementAnswerMs
      const tx = new PostgresTransaction(
        (statement) => line.send(statements.prepare(statement, target.instanceId, answerMs)),
        // A change of tables waits for locks without a bound, in the database.
        target.isMigration ? () => undefined : locks.take,
      )
      const begun = line.send(begin)
      begun.catch(() => undefined)
      if (target.isMigration) tx.sendPrepared(line.send(beginMigration))
      let result: T
      try {
        result = await work(tx)
        // Work that caught the refusal of a lock has run without it.
        if (locks.isContended) throw new LockContention('Another write has the lock')
      } catch (error) {
        tx.end()
        await line.send(rollback)
        throw await tx.failure(error)
      }
      tx.end()
      await begun
      const { command } = await line.send(commit)
      // The server replies ROLLBACK to the COMMIT of a failed transaction.
      if (command !== 'COMMIT') throw await tx.failure(new Error('The transaction was undone'))
      for (const hook of tx.hooks) hook()
      return result
    })
  }

  return {
    async write(target, work) {
      const locks = lockQueue.open()
      try {
        for (let tries = 1; ; ) {
          try {
            return await attempt(target, locks, work)
          } catch (error) {
            if (locks.isContended) {
              await locks.wait()
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
