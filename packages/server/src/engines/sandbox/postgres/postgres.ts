/**
 * SQL databases on PostgreSQL: a schema each, used through connections of a role confined to it. Owns the connections
 * and the transaction around each statement; `role` creates schema and role, `exchange` runs the
 * protocol of a statement.
 */
import type pg from 'pg'
import type { Log } from '../../../base/log.ts'
import { parseDatabaseUrl, withUser } from '../../../base/network/database-url.ts'
import { postgresIdleTransactionMs, postgresLockMs } from '../../../limits/postgres.ts'
import { sqlAnswerGraceMs, sqlReadsAtOnceMax, sqlWaiting } from '../../../limits/resources.ts'
import { createConnector } from '../../postgres/connect.ts'
import { faultOf, meaningOf, sqlStateOf } from '../../postgres/errors.ts'
import { ConnectionPool } from '../../postgres/pool.ts'
import type { Circuit } from '../../sql/circuit.ts'
import { createEngineQueue } from '../../sql/engine-queue.ts'
import { EngineError } from '../../sql/error.ts'
import { type Sandbox, type SandboxAnswer, type Sandboxes, StatementError, tookTooLong } from '../sandbox.ts'
import { createCounting } from './counts.ts'
import { Exchange } from './exchange.ts'
import { prepareRole } from './role.ts'
import { type PostgresStatement, translate } from './statement.ts'

/** SQLSTATEs of the fault table that a sandboxed statement causes itself, by exceeding a bound. */
const own: ReadonlySet<string> = new Set(['23505', '25006', '53400', '54000', '55000', '72000'])
const canceled = '57014'

/** Maps a failure to the error for the statement's caller. */
function refusalOf(error: unknown, timeoutMs: number): unknown {
  if (error instanceof StatementError || error instanceof EngineError) return error
  const state = sqlStateOf(error)
  if (state === canceled) return tookTooLong(timeoutMs)
  if (state !== null && (own.has(state) || meaningOf(state) === null))
    return new StatementError('query', (error as Error).message)
  const { error: mapped } = faultOf(error)
  if (mapped instanceof EngineError && mapped.kind === 'conflict')
    return new EngineError('busy', mapped.message, [], error)
  return mapped
}

/** `url` is the platform user's, who must be allowed to create roles; `secret` derives the roles' passwords. */
export function createPostgresSandboxes(options: {
  url: string
  secret: string
  circuit: Circuit
  log: Log
}): Sandboxes {
  const { url, secret, circuit, log } = options
  const address = parseDatabaseUrl(url)
  return {
    async open(name, limits): Promise<Sandbox> {
      const role = await prepareRole({ address, secret, name })
      const { timeoutMs } = limits
      // One more than the reads of the embedded engine, which has a process for writes besides.
      const running = sqlReadsAtOnceMax + 1
      const connector = createConnector(withUser(address, role.name, role.password), {
        application_name: `plinth ${role.schema}`,
        statement_timeout: timeoutMs,
        lock_timeout: postgresLockMs,
        idle_in_transaction_session_timeout: postgresIdleTransactionMs,
        keepAlive: true,
      })
      const pool = new ConnectionPool({ connector, connectionsMax: running, onFailure: () => circuit.suspect(), log })
      circuit.onOpen((failure) => {
        connector.forget()
        pool.abort(failure)
      })
      const counting = createCounting(role.schema)
      const queue = createEngineQueue('statements', { running, ...sqlWaiting })

      async function execute(client: pg.Client, statement: PostgresStatement): Promise<SandboxAnswer> {
        const exchange = new Exchange(statement, counting, limits)
        // The server cancels a statement itself; this is for a server that stops replying.
        const timer = setTimeout(() => exchange.abandon(tookTooLong(timeoutMs)), timeoutMs + sqlAnswerGraceMs)
        try {
          client.query(exchange)
          const answer = await exchange.answer
          if (!statement.isRead) await client.query('COMMIT')
          return answer
        } finally {
          clearTimeout(timer)
          if (statement.makesTables) counting.forget()
        }
      }

      /** Lends a connection, and resets its session afterwards. */
      async function withClient<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
        circuit.check()
        const client = await pool.take()
        let failed = true
        circuit.load.running += 1
        try {
          const result = await work(client)
          failed = false
          return result
        } catch (error) {
          if (faultOf(error).scope === 'connection') circuit.suspect()
          throw refusalOf(error, timeoutMs)
        } finally {
          circuit.load.running -= 1
          circuit.load.finished += 1
          void cleanUp(client, failed).then((isClean) => pool.give(client, isClean))
        }
      }

      return {
        async run(query, params, caller) {
          const statement = translate(query, params)
          return queue.enter(caller, () => withClient((client) => execute(client, statement)))
        },
        close: () => pool.close(),
      }
    },
  }
}

/**
 * Resets the session (settings, locks, temporary objects) before the connection is reused. Returns false on failure.
 */
async function cleanUp(client: pg.Client, failed: boolean): Promise<boolean> {
  try {
    if (failed) await client.query('ROLLBACK')
    await client.query('DISCARD ALL')
    return true
  } catch {
    return false
  }
}
