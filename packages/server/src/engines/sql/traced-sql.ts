/**
 * Decorator of the port `Sql`: statements of sampled requests are added to their traces (`base/tracing`), and noted for
 * the indexes that they use.
 */
import { currentTrace, type RequestTrace } from '../../base/tracing/request-trace.ts'
import { decorateDatabase } from './decorate-database.ts'
import type { IndexUses } from './index-uses.ts'
import { type PageQuery, type PageRows, plainPage } from './page-query.ts'
import type { Database, Sql, Transaction } from './sql.ts'
import type { SqlText } from './sql-text.ts'

const rowsOfPage = (page: PageRows<unknown> | null): number | null => page?.rows.length ?? null
const lengthOf = (rows: readonly unknown[]): number => rows.length
const same = (count: number): number => count
const countOf = (row: unknown): number => (row === null ? 0 : 1)

/** Notes a statement of a sampled request. */
type Note = (query: SqlText) => void

const tracedTransaction = (tx: Transaction, trace: RequestTrace, note: Note): Transaction => ({
  all(query) {
    note(query)
    return trace.time('statement', query.text, () => tx.all(query), lengthOf) as ReturnType<typeof tx.all<never>>
  },
  run(query) {
    note(query)
    return trace.time('statement', query.text, () => tx.run(query), same)
  },
  lockRow(query, against) {
    note(query)
    const lock = () => tx.lockRow(query, against)
    return trace.time('statement', query.text, lock, countOf) as ReturnType<typeof tx.lockRow<never>>
  },
  send(query, explain) {
    note(query)
    trace.span('statement', query.text, trace.now())
    tx.send(query, explain)
  },
  append(statement) {
    note(statement)
    trace.span('statement', statement.text, trace.now())
    tx.append(statement)
  },
  lock: (...keys) => (keys.length === 0 ? tx.lock() : trace.time('lock', keys.join(', '), () => tx.lock(...keys))),
  afterCommit: (hook) => tx.afterCommit(hook),
})

/** The write waits for the writer, works, and commits: three spans beside those of its statements. */
async function tracedWrite<T>(
  database: Database,
  trace: RequestTrace,
  note: Note,
  work: (tx: Transaction) => Promise<T>,
  options: Parameters<Database['write']>[1],
): Promise<T> {
  const queuedMs = trace.now()
  let workedMs: number | null = null
  const result = await database.write(async (tx) => {
    if (workedMs === null) trace.span('queue', 'Wait for the writer', queuedMs)
    const value = await work(tracedTransaction(tx, trace, note))
    workedMs = trace.now()
    return value
  }, options)
  if (workedMs !== null) trace.span('commit', 'Commit', workedMs)
  return result
}

function traced(database: Database, namespace: string, uses: IndexUses): Database {
  const note: Note = (query) => uses.note(namespace, database, query)
  const { readEncodedPage } = database
  return decorateDatabase(database, {
    all(query, onRead, caller) {
      const trace = currentTrace()
      if (!trace) return database.all(query, onRead, caller)
      note(query)
      return trace.time('statement', query.text, () => database.all(query, onRead, caller), lengthOf)
    },
    readPage(query) {
      const trace = currentTrace()
      if (!trace) return database.readPage(query)
      return tracedPage(trace, note, query, () => database.readPage(query)) as never
    },
    readEncodedPage:
      readEncodedPage &&
      ((query) => {
        const trace = currentTrace()
        if (!trace) return readEncodedPage(query)
        return tracedPage(trace, note, query, () => readEncodedPage(query)) as never
      }),
    readLargePage(query, bytesMax) {
      const trace = currentTrace()
      if (!trace) return database.readLargePage(query, bytesMax)
      return tracedPage(trace, note, query, () => database.readLargePage(query, bytesMax)) as never
    },
    scan(query, options) {
      const trace = currentTrace()
      if (!trace) return database.scan(query, options)
      note(query)
      return trace.time('statement', query.text, () => database.scan(query, options), lengthOf) as never
    },
    write(work, options) {
      const trace = currentTrace()
      return trace ? tracedWrite(database, trace, note, work, options) : database.write(work, options)
    },
  })
}

function tracedPage(
  trace: RequestTrace,
  note: Note,
  query: PageQuery,
  read: () => Promise<PageRows<unknown> | null>,
): Promise<PageRows<unknown> | null> {
  const plain = plainPage(query)
  note(plain)
  return trace.time('statement', plain.text, read, rowsOfPage)
}

/** Databases of static namespaces are kept by features, so one decorated database serves sampled and other requests. */
export function tracedSql(sql: Sql, uses: IndexUses): Sql {
  const statics = new Map<string, Database>()
  return {
    ...sql,
    database(address) {
      const { namespace, instanceId } = address
      // Resolved for each request.
      if (instanceId !== null) {
        const database = sql.database(address)
        return currentTrace() ? traced(database, namespace, uses) : database
      }
      let database = statics.get(namespace)
      if (!database) {
        database = traced(sql.database(address), namespace, uses)
        statics.set(namespace, database)
      }
      return database
    },
  }
}
