/**
 * The shared engine: the `Sql` port on PostgreSQL. A bounded connection pool, statements prepared by text, transactions
 * retried on serialization conflicts, and connection failures mapped to `EngineError`. Several processes may serve the
 * same database.
 */
import type { Log } from '../../base/log.ts'
import { parseDatabaseUrl } from '../../base/network/database-url.ts'
import { postgresStartMs } from '../../limits/postgres.ts'
import { writeQueueOperationsMax } from '../../limits/sqlite.ts'
import { EngineError } from '../sql/error.ts'
import type { ScanOptions } from '../sql/scan-queue.ts'
import type { Database, Sql } from '../sql/sql.ts'
import { type SqlText, sql } from '../sql/sql-text.ts'
import { openConnections } from './connections.ts'
import { postgresDialect } from './dialect.ts'
import { findInstances } from './instances/instance-list.ts'
import { readOrigin } from './origin.ts'
import { createPostgresPages } from './pages.ts'
import { explainStatement, postgresPlan } from './query-plan.ts'
import { createPostgresScans } from './scans.ts'
import { watchServerHealth } from './server-health.ts'
import { createStatements } from './statements.ts'
import type { DataRow } from './wire/data-row.ts'
import { createPostgresWriter } from './writes/writer.ts'

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
  const server = watchServerHealth({ address, log })
  const { circuit } = server
  const connections = openConnections({ address, circuit, onFault: server.note, log })
  const statements = createStatements()
  const scans = createPostgresScans(connections, statements)
  const writer = createPostgresWriter(connections, statements)
  let waiting = 0

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

  async function read<Row>(instanceId: string | null, query: SqlText): Promise<Row[]> {
    const prepared = statements.prepare(query, instanceId)
    return (await connections.read(prepared, prepared.table)).rows as Row[]
  }

  async function readReceived(instanceId: string | null, query: SqlText): Promise<DataRow[]> {
    const prepared = { ...statements.prepare(query, instanceId), keepsRows: true }
    return (await connections.read(prepared, prepared.table)).rows as DataRow[]
  }

  const databaseOf = (namespace: string, instanceId: string | null): Database => {
    const all = <Row>(query: SqlText): Promise<Row[]> => bounded(() => read<Row>(instanceId, query))
    return {
      dialect: postgresDialect,
      all,
      ...createPostgresPages({ all, received: (query) => bounded(() => readReceived(instanceId, query)) }),
      explain: async (query) => postgresPlan(await all(explainStatement(query))),
      scan: async <Row>(query: SqlText, options: ScanOptions) =>
        [...(await scans.read(query, instanceId, options))] as Row[],
      write(work, { table, row, isMigration = false } = {}) {
        const key = table === undefined ? namespace : `${namespace}.${table}`
        return bounded(() => {
          server.checkWrites()
          return writer.write({ instanceId, key, row: table === undefined ? undefined : row, isMigration }, work)
        })
      },
      // The migration waits for the server, and blocks only writes of the table.
      async buildIndexes() {},
      // The reply to a commit arrives once it is durable.
      async synced() {},
    }
  }

  async function close(): Promise<void> {
    server.close()
    await connections.close()
  }

  return {
    keepsInstancesApart: false,
    findInstances: (search) => findInstances(databaseOf(search.namespace, null), search),
    origin: () => readOrigin(databaseOf('', null)),
    database: ({ namespace, instanceId }) => databaseOf(namespace, instanceId),
    pauseWrites: null,
    async namespaces() {
      // Namespaces of the platform have no declared tables, but versions of their own.
      const query = sql`SELECT DISTINCT table_schema AS name FROM information_schema.tables
        WHERE table_name = '_tables' OR (table_name = '_versions' AND left(table_schema, 1) = '_')`
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
        await close()
        throw error
      }
    },
    close,
  }
}
