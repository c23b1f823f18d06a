/**
 * SQL databases on PostgreSQL: a schema each, used through connections of a role that may do nothing outside it. Owns
 * the connections and the transaction around each statement; making schema and role is `sandbox-postgres-role`'s, what
 * goes over a connection `sandbox-postgres-exchange`'s.
 */
import pg from 'pg'
import type { Log } from '../base/log.ts'
import { postgresConnectTimeoutMs, postgresIdleMs } from '../limits.ts'
import { sqlAnswerGraceMs, sqlReadsAtOnceMax, sqlWaitingMax, sqlWaitMs } from '../limits-resources.ts'
import { EngineError } from './error.ts'
import { type Sandbox, type SandboxAnswer, type Sandboxes, StatementError, tookTooLong } from './sandbox.ts'
import { createCounting } from './sandbox-postgres-counts.ts'
import { Exchange } from './sandbox-postgres-exchange.ts'
import { prepareRole, type Role } from './sandbox-postgres-role.ts'
import { type PostgresStatement, translate } from './sandbox-postgres-statement.ts'
import { createTurns } from './sandbox-turns.ts'

/**
 * States that are neither the statement's mistake nor its database's matter: the server is away, full, stopping or
 * damaged, or lets the role in no more. `53400`, a bound that a statement of its own accord went beyond, is not one.
 */
const away = /^(?:08|28|53[1-3]|57P|58|XX00[12])/
/** A deadlock, or a lock that was not to be had: the same statement may succeed when it is sent again. */
const busy: ReadonlySet<string> = new Set(['40001', '40P01', '55P03'])
const canceled = '57014'

/** What a failure means to whoever sent the statement. */
function refusalOf(error: unknown, timeoutMs: number): unknown {
  if (error instanceof StatementError || error instanceof EngineError) return error
  if (!(error instanceof pg.DatabaseError)) return new EngineError('unavailable', (error as Error).message, [], error)
  const { code = '', message } = error
  if (code === canceled) return tookTooLong(timeoutMs)
  if (busy.has(code)) return new EngineError('busy', message, [], error)
  if (away.test(code)) return new EngineError('unavailable', message, [], error)
  return new StatementError('query', message)
}

/** `url` is of the platform's own user, who must be allowed to create roles; `secret` gives the roles' passwords. */
export function createPostgresSandboxes(options: { url: string; secret: string; log: Log }): Sandboxes {
  const { url, secret, log } = options
  return {
    async open(name, limits): Promise<Sandbox> {
      const role = await prepareRole({ url, secret, name })
      const { timeoutMs, rowsMax } = limits
      // One more than reads of the embedded engine, which has a process for writes besides.
      const running = sqlReadsAtOnceMax + 1
      const pool = openPool(url, role, running, timeoutMs)
      pool.on('error', (error) => log.debug('An idle connection of a SQL database ended', { error }))
      const counting = createCounting(role.schema)
      const turns = createTurns({ running, waiting: sqlWaitingMax, waitMs: sqlWaitMs })

      async function execute(client: pg.PoolClient, statement: PostgresStatement): Promise<SandboxAnswer> {
        const exchange = new Exchange(statement, counting, rowsMax)
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

      /** Lends a connection, which is as new for whoever has it next. */
      async function withClient<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
        let client: pg.PoolClient | undefined
        let failed = true
        try {
          client = await pool.connect()
          client.on('error', ignore)
          const result = await work(client)
          failed = false
          return result
        } catch (error) {
          throw refusalOf(error, timeoutMs)
        } finally {
          if (client) void cleanUp(client, failed)
        }
      }

      return {
        async run(query, params) {
          const statement = translate(query, params)
          return turns.enter(() => withClient((client) => execute(client, statement)))
        },
        close: () => pool.end(),
      }
    },
  }
}

function openPool(url: string, role: Role, max: number, timeoutMs: number): pg.Pool {
  const own = new URL(url)
  own.username = role.name
  own.password = role.password
  return new pg.Pool({
    connectionString: own.href,
    application_name: `plinth ${role.schema}`,
    max,
    connectionTimeoutMillis: postgresConnectTimeoutMs,
    idleTimeoutMillis: postgresIdleMs,
    statement_timeout: timeoutMs,
    keepAlive: true,
  })
}

/** A connection that breaks fails what is sent over it; this is for one that breaks while nobody waits. */
const ignore = (): void => undefined

/**
 * Whatever a statement left in its session (settings, locks, temporary things) is gone before anybody else has the
 * connection.
 */
async function cleanUp(client: pg.PoolClient, failed: boolean): Promise<void> {
  try {
    if (failed) await client.query('ROLLBACK')
    await client.query('DISCARD ALL')
    client.off('error', ignore)
    client.release()
  } catch {
    client.release(true)
  }
}
