/**
 * Runs statements over a pool of PostgreSQL connections. A transaction has a connection of its own; reads share a few,
 * pipelined. Every statement is prepared once per connection. Partitions connections between tables, so a locked table
 * takes a share of them, never all.
 */
import type pg from 'pg'
import type { Log } from '../../base/log.ts'
import type { DatabaseAddress } from '../../base/network/database-url.ts'
import {
  circuitTickMs,
  postgresConnectionsMax,
  postgresIdleTransactionMs,
  postgresLockMs,
  postgresSharedConnectionsMax,
  postgresTableShare,
  postgresWaitMs,
  statementAnswerMs,
  statementTimeoutMs,
} from '../../limits/postgres.ts'
import { writeQueueOperationsMax } from '../../limits/sqlite.ts'
import type { Circuit } from '../sql/circuit.ts'
import { createEngineQueue, type EngineQueue } from '../sql/engine-queue.ts'
import type { EngineError } from '../sql/error.ts'
import { createConnector } from './connect.ts'
import type { FaultScope } from './errors.ts'
import { ConnectionPool } from './pool.ts'
import { PooledConnection, type PreparedConnection } from './prepared-connection.ts'
import { createSharedReads } from './shared-reads.ts'
import type { PreparedStatement } from './statements.ts'
import type { Answer } from './wire/wire.ts'

export interface Connections {
  /** Sends a statement outside a transaction; `key` names the table it reads. */
  read(statement: PreparedStatement, key: string): Promise<Answer>
  /**
   * Lends a connection to `work` exclusively. Statements sent without awaiting are pipelined in order. Rejects with
   * `EngineError` `busy` while the table named by `key` is known to be locked, or has used up its share of the
   * connections.
   */
  withOwn<T>(key: string, work: (line: PreparedConnection) => Promise<T>): Promise<T>
  close(): Promise<void>
}

export interface ConnectionOptions {
  readonly address: DatabaseAddress
  readonly circuit: Circuit
  /** Reports a failure that concerns more than its statement. */
  readonly onFault: (scope: FaultScope, error: EngineError) => void
  readonly log: Log
}

/** Connections that transactions on one table may use; the rest is left to other tables. */
const tableShareConnections = Math.floor(
  (postgresConnectionsMax - 1 - postgresSharedConnectionsMax) * postgresTableShare,
)

/** Connections are opened on demand. */
export function openConnections({ address, circuit, onFault, log }: ConnectionOptions): Connections {
  const connector = createConnector(address, {
    application_name: 'plinth',
    statement_timeout: statementTimeoutMs,
    lock_timeout: postgresLockMs,
    idle_in_transaction_session_timeout: postgresIdleTransactionMs,
    query_timeout: statementAnswerMs,
    keepAlive: true,
  })
  const lines = new Map<pg.Client, PooledConnection>()
  const pool = new ConnectionPool({
    connector,
    // One is reserved for the probe.
    connectionsMax: postgresConnectionsMax - 1,
    onFailure: () => circuit.suspect(),
    log,
  })
  circuit.onOpen((failure) => {
    connector.forget()
    pool.abort(failure)
  })

  function report(scope: FaultScope, error: EngineError): void {
    connector.forget()
    onFault(scope, error)
  }

  async function take(): Promise<PooledConnection> {
    circuit.check()
    const client = await pool.take()
    let line = lines.get(client)
    if (!line) {
      line = new PooledConnection(client, circuit.load, report)
      lines.set(client, line)
      client.on('end', () => lines.delete(client))
    }
    return line
  }
  const give = (line: PooledConnection): void => pool.give(line.client, !line.isSpent)

  const reads = createSharedReads({ take, give, limit: () => pool.limit })
  const tick = setInterval(() => {
    reads.tick()
    const nowMs = performance.now()
    for (const line of lines.values()) line.expire(nowMs)
  }, circuitTickMs)
  tick.unref()

  /** Transactions of a table begin in the order in which they came. */
  const allCallers = ''
  /** Per table: its share of the transaction connections. */
  const shares = new Map<string, EngineQueue>()
  function shareOf(key: string): EngineQueue {
    let share = shares.get(key)
    if (!share) {
      const waiting = Math.floor(writeQueueOperationsMax * postgresTableShare)
      share = createEngineQueue('transactions', {
        running: tableShareConnections,
        waiting,
        waitingPerCaller: waiting,
        waitMs: postgresWaitMs,
      })
      shares.set(key, share)
    }
    return share
  }

  async function lend<T>(work: (line: PreparedConnection) => Promise<T>): Promise<T> {
    const line = await take()
    try {
      return await work(line)
    } finally {
      give(line)
    }
  }

  return {
    async read(statement, key) {
      circuit.check()
      // With a single connection, reads queue for it like writes, which would otherwise wait for a pause between reads.
      if (pool.limit === 1) return lend((line) => line.send(statement))
      return reads.send(statement, key)
    },
    async withOwn(key, work) {
      circuit.check()
      reads.check(key)
      return shareOf(key).enter(allCallers, () => lend(work))
    },
    async close() {
      clearInterval(tick)
      await pool.close()
    },
  }
}
