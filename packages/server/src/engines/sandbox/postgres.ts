/**
 * SQL databases on PostgreSQL: a schema each, used through connections of a role that may do nothing outside it. Owns
 * the connections and the transaction around each statement; making schema and role is `sandbox-postgres-role`'s, what
 * goes over a connection `sandbox-postgres-exchange`'s.
 */
import type pg from 'pg'
import type { Log } from '../../base/log.ts'
import { parseDatabaseUrl, withUser } from '../../base/network/database-url.ts'
import { postgresLockMs } from '../../limits/postgres.ts'
import { sqlAnswerGraceMs, sqlReadsAtOnceMax, sqlWaitingMax, sqlWaitMs } from '../../limits/resources.ts'
import { createConnector } from '../postgres/connect.ts'
import { faultOf, meaningOf, sqlStateOf } from '../postgres/errors.ts'
import { createPool } from '../postgres/pool.ts'
import type { Circuit } from '../sql/circuit.ts'
import { EngineError } from '../sql/error.ts'
import { createCounting } from './postgres-counts.ts'
import { Exchange } from './postgres-exchange.ts'
import { prepareRole } from './postgres-role.ts'
import { type PostgresStatement, translate } from './postgres-statement.ts'
import { type Sandbox, type SandboxAnswer, type Sandboxes, StatementError, tookTooLong } from './sandbox.ts'
import { createSlotQueue } from './slot-queue.ts'

/** States of the table of faults that are the statement's own matter here: bounds it went beyond by itself. */
const own: ReadonlySet<string> = new Set(['23505', '25006', '53400', '54000', '55000', '72000'])
const canceled = '57014'

/** What a failure means to the caller who sent the statement. */
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

/** `url` is of the platform's own user, who must be allowed to create roles; `secret` gives the roles' passwords. */
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
      // One more than reads of the embedded engine, which has a process for writes besides.
      const running = sqlReadsAtOnceMax + 1
      const connector = createConnector(withUser(address, role.name, role.password), {
        application_name: `plinth ${role.schema}`,
        statement_timeout: timeoutMs,
        lock_timeout: postgresLockMs,
        keepAlive: true,
      })
      const pool = createPool({ connector, connectionsMax: running, onFailure: () => circuit.suspect(), log })
      circuit.onOpen((failure) => {
        connector.forget()
        pool.abort(failure)
      })
      const counting = createCounting(role.schema)
      const slots = createSlotQueue({ running, waiting: sqlWaitingMax, waitMs: sqlWaitMs })

      async function execute(client: pg.Client, statement: PostgresStatement): Promise<SandboxAnswer> {
        const exchange = new Exchange(statement, counting, limits)
        // The server ends a statement itself; this is for one that has gone silent.
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

      /** Lends a connection, which is as new when it is lent again. */
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
        async run(query, params) {
          const statement = translate(query, params)
          return slots.enter(() => withClient((client) => execute(client, statement)))
        },
        close: () => pool.close(),
      }
    },
  }
}

/**
 * Whatever a statement left in its session (settings, locks, temporary things) is gone before the connection is lent
 * again. False where that failed.
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
