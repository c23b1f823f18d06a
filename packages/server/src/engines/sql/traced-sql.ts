/** Decorator of the port `Sql`: statements of sampled requests are added to their traces (`base/tracing`). */
import { currentTrace, type RequestTrace } from '../../base/tracing/request-trace.ts'
import { decorateDatabase } from './decorate-database.ts'
import { type PageQuery, type PageRows, plainPage } from './page-query.ts'
import type { Database, Sql, Transaction } from './sql.ts'

const rowsOfPage = (page: PageRows<unknown> | null): number | null => page?.rows.length ?? null
const textOfPage = (query: PageQuery): string => plainPage(query).text
const lengthOf = (rows: readonly unknown[]): number => rows.length
const same = (count: number): number => count
const countOf = (row: unknown): number => (row === null ? 0 : 1)

const tracedTransaction = (tx: Transaction, trace: RequestTrace): Transaction => ({
  all: (query) =>
    trace.time('statement', query.text, () => tx.all(query), lengthOf) as ReturnType<typeof tx.all<never>>,
  run: (query) => trace.time('statement', query.text, () => tx.run(query), same),
  lockRow: (query, against) =>
    trace.time('statement', query.text, () => tx.lockRow(query, against), countOf) as ReturnType<
      typeof tx.lockRow<never>
    >,
  send(query, explain) {
    trace.span('statement', query.text, trace.now())
    tx.send(query, explain)
  },
  lock: (...keys) => (keys.length === 0 ? tx.lock() : trace.time('lock', keys.join(', '), () => tx.lock(...keys))),
  afterCommit: (hook) => tx.afterCommit(hook),
})

/** The write waits for the writer, works, and commits: three spans beside those of its statements. */
async function tracedWrite<T>(
  database: Database,
  trace: RequestTrace,
  work: (tx: Transaction) => Promise<T>,
  options: Parameters<Database['write']>[1],
): Promise<T> {
  const queuedMs = trace.now()
  let workedMs: number | null = null
  const result = await database.write(async (tx) => {
    if (workedMs === null) trace.span('queue', 'Wait for the writer', queuedMs)
    const value = await work(tracedTransaction(tx, trace))
    workedMs = trace.now()
    return value
  }, options)
  if (workedMs !== null) trace.span('commit', 'Commit', workedMs)
  return result
}

const traced = (database: Database): Database =>
  decorateDatabase(database, {
    all(query, onRead, caller) {
      const trace = currentTrace()
      if (!trace) return database.all(query, onRead, caller)
      return trace.time('statement', query.text, () => database.all(query, onRead, caller), lengthOf)
    },
    readPage(query) {
      const trace = currentTrace()
      if (!trace) return database.readPage(query)
      return trace.time('statement', textOfPage(query), () => database.readPage(query), rowsOfPage) as never
    },
    readLargePage(query, bytesMax) {
      const trace = currentTrace()
      if (!trace) return database.readLargePage(query, bytesMax)
      const read = () => database.readLargePage(query, bytesMax)
      return trace.time('statement', textOfPage(query), read, rowsOfPage) as never
    },
    scan(query, options) {
      const trace = currentTrace()
      if (!trace) return database.scan(query, options)
      return trace.time('statement', query.text, () => database.scan(query, options), lengthOf) as never
    },
    write(work, options) {
      const trace = currentTrace()
      return trace ? tracedWrite(database, trace, work, options) : database.write(work, options)
    },
  })

/** Databases of static namespaces are kept by features, so one decorated database serves sampled and other requests. */
export function tracedSql(sql: Sql): Sql {
  const statics = new Map<string, Database>()
  return {
    ...sql,
    database(address) {
      const { namespace, instanceId } = address
      // Resolved for each request.
      if (instanceId !== null) return currentTrace() ? traced(sql.database(address)) : sql.database(address)
      let database = statics.get(namespace)
      if (!database) {
        database = traced(sql.database(address))
        statics.set(namespace, database)
      }
      return database
    },
  }
}
