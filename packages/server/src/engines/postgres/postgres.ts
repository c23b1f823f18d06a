/**
 * The shared engine: the `Sql` port on PostgreSQL. A bounded connection pool, statements prepared by text, transactions
 * retried on serialization conflicts, and connection failures mapped to `EngineError`. Several processes may serve the
 * same database.
 */

import { createLru } from '../../base/concurrency/lru.ts'
import type { Log } from '../../base/log.ts'
import { parseDatabaseUrl } from '../../base/network/database-url.ts'
import {
  advisoryLockAttemptsMax,
  advisoryLockWaitersMax,
  advisoryLockWaitMs,
  postgresMigrationMs,
  postgresRetriesMax,
  postgresStartMs,
  statementAnswerMs,
} from '../../limits/postgres.ts'
import { statementCacheEntriesMax, writeQueueOperationsMax } from '../../limits/sqlite.ts'
import { EngineError } from '../sql/error.ts'
import type { Database, Sql, Transaction } from '../sql/sql.ts'
import { instanceToken, type SqlText, sql } from '../sql/sql-text.ts'
import { openConnections } from './connections.ts'
import { postgresDialect } from './dialect.ts'
import { createLockQueue, LockContention, type Locks } from './lock-queue.ts'
import { readOrigin } from './origin.ts'
import { createPostgresPages } from './pages.ts'
import type { Prepared } from './prepared-connection.ts'
import { watchServerHealth } from './server-health.ts'
import { PostgresTransaction } from './transaction.ts'

const isRetryable = (error: unknown): boolean => error instanceof EngineError && error.kind === 'conflict'

/** The port's `?` as `$1`, `$2`…; the instance token becomes `$1` wherever it stands. */
interface Numbered {
  readonly name: string
  readonly text: string
  readonly hasInstance: boolean
  /** The first table in the text; empty if there is none. */
  readonly table: string
}

const tablePattern = /(?:FROM|INTO|UPDATE|JOIN) "(\w+)"\."(\w+)"/

const tableIn = (text: string): string => {
  const [, namespace, name] = tablePattern.exec(text) ?? []
  return name === undefined ? '' : `${namespace}.${name}`
}

const placeholders = /\?(?:instance)?/g

function createNumbering(): (text: string) => Numbered {
  const known = createLru<string, Numbered>(4 * statementCacheEntriesMax)
  let names = 0
  return (text) => {
    let numbered = known.get(text)
    if (!numbered) {
      const hasInstance = text.includes(instanceToken.text)
      let count = hasInstance ? 1 : 0
      const renumbered = text.replace(placeholders, (found) => (found === instanceToken.text ? '$1' : `$${++count}`))
      // An evicted text gets a new name: some connections may still have the old one prepared.
      numbered = { name: `s${++names}`, text: renumbered, hasInstance, table: tableIn(text) }
      known.set(text, numbered)
    }
    return numbered
  }
}

const begin: Prepared = { name: 'begin', text: 'BEGIN', values: [] }
const commit: Prepared = { name: 'commit', text: 'COMMIT', values: [] }
const rollback: Prepared = { name: 'rollback', text: 'ROLLBACK', values: [] }
const beginMigration: Prepared = {
  name: 'migrate',
  text: `SELECT set_config('lock_timeout', '0', true), set_config('statement_timeout', $1, true)`,
  values: [String(postgresMigrationMs)],
}

export interface PostgresOptions {
  /** A `postgres://` URL; with several hosts, the primary is used. */
  readonly url: string
  readonly log: Log
  /** Time limit of `waitUntilReady`, in milliseconds. */
  readonly startMs?: number
}

export interface PostgresSql extends Sql {
  /**
   * Resolves once the server accepts connections. Rejects with `EngineError` `unavailable`, naming host, port and
   * database, after the time limit, and at once when it rejects the user or has no such database.
   */
  waitUntilReady(): Promise<void>
}

/** Connections are opened on demand. */
export function openPostgres({ url, log, startMs = postgresStartMs }: PostgresOptions): PostgresSql {
  const address = parseDatabaseUrl(url)
  const numbered = createNumbering()
  const server = watchServerHealth({ address, log })
  const { circuit } = server
  const connections = openConnections({ address, circuit, onFault: server.note, log })
  const lockQueue = createLockQueue({
    waiting: advisoryLockWaitersMax,
    attempts: advisoryLockAttemptsMax,
    waitMs: advisoryLockWaitMs,
  })
  let waiting = 0

  function prepare(
    instanceId: string | null,
    values: readonly unknown[],
    numbered: Numbered,
    answerMs = statementAnswerMs,
  ): Prepared {
    const { name, text, hasInstance } = numbered
    if (hasInstance && instanceId === null) throw new Error('The statement needs an instance')
    return { name, text, values: hasInstance ? [instanceId, ...values] : values, answerMs }
  }

  /** One attempt at a write. Its first statement goes out with BEGIN, its last with COMMIT. */
  async function attempt<T>(target: Target, locks: Locks, work: (tx: Transaction) => Promise<T>): Promise<T> {
    return connections.withOwn(target.key, async (line) => {
      const answerMs = target.isMigration ? postgresMigrationMs : statementAnswerMs
      const tx = new PostgresTransaction(
        ({ text, values }) => line.send(prepare(target.instanceId, values, numbered(text), answerMs)),
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

  async function write<T>(target: Target, work: (tx: Transaction) => Promise<T>): Promise<T> {
    server.checkWrites()
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
  }

  /** The queue for connections is bounded; so is the number of statements that wait for answers. */
  async function bounded<T>(task: () => Promise<T>): Promise<T> {
    if (waiting >= writeQueueOperationsMax) throw new EngineError('busy', 'Too many operations are waiting')
    waiting += 1
    try {
      return await task()
    } finally {
      waiting -= 1
    }
  }

  async function read<Row>(instanceId: string | null, { text, values }: SqlText): Promise<Row[]> {
    const found = numbered(text)
    return [...(await connections.read(prepare(instanceId, values, found), found.table)).rows] as Row[]
  }

  const databaseOf = (namespace: string, instanceId: string | null): Database => {
    const all = <Row>(text: SqlText): Promise<Row[]> => bounded(() => read<Row>(instanceId, text))
    return {
      dialect: postgresDialect,
      all,
      ...createPostgresPages(all),
      write(work, { table, isMigration = false } = {}) {
        const key = table === undefined ? namespace : `${namespace}.${table}`
        return bounded(() => write({ instanceId, key, isMigration }, work))
      },
      // The reply to a commit arrives once it is durable.
      async synced() {},
    }
  }

  return {
    keepsInstancesApart: false,
    origin: () => readOrigin(databaseOf('', null)),
    database: ({ namespace, instanceId }) => databaseOf(namespace, instanceId),
    pauseWrites: null,
    async namespaces() {
      const query = sql`SELECT table_schema AS name FROM information_schema.tables WHERE table_name = '_tables'`
      return (await databaseOf('', null).all<{ name: string }>(query)).map(({ name }) => name)
    },
    prepareAgain() {},
    checkpointIdle: async () => {},
    circuit,
    findFault: async () => (await server.probe())?.message ?? null,
    async waitUntilReady() {
      try {
        await server.waitUntilReady(startMs)
      } catch (error) {
        await this.close()
        throw error
      }
    },
    async close() {
      server.close()
      await connections.close()
    },
  }
}

/** Target of a write. */
interface Target {
  readonly instanceId: string | null
  /** Names the table, or the namespace, whose share of the connections it uses. */
  readonly key: string
  readonly isMigration: boolean
}
