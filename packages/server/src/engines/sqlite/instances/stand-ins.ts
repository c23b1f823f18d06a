/**
 * Empty in-memory databases that stand in for instances without a file: their reads find no rows, and their first write
 * is rehearsed.
 */
import { type PageQuery, type PageRows, plainPage } from '../../sql/page-query.ts'
import type { QueryPlan } from '../../sql/query-plan.ts'
import type { Database } from '../../sql/sql.ts'
import type { SqlText } from '../../sql/sql-text.ts'
import { openConnection } from '../connection.ts'
import { sqliteDialect } from '../dialect.ts'
import { sqlitePlan } from '../query-plan.ts'
import { readScalar } from '../readers/adaptive-reader.ts'
import { rehearse, runAtOnce, type Work } from '../transaction.ts'
import type { PrepareInstance } from './instance-pool.ts'

/** A stand-in. Its reads are synchronous. */
class StandIn implements Database {
  readonly dialect = sqliteDialect
  readonly readEncodedPage = null
  readonly connection = openConnection(':memory:', { small: true })

  async all<Row>(query: SqlText, onRead?: (rows: Row[]) => void): Promise<Row[]> {
    const rows = this.connection.all(query) as Row[]
    onRead?.(rows)
    return rows
  }

  async readPage<Row>(query: PageQuery): Promise<PageRows<Row>> {
    return this.#read(query, Number.POSITIVE_INFINITY)
  }

  async readLargePage<Row>(query: PageQuery, bytesMax: number): Promise<PageRows<Row>> {
    return this.#read(query, bytesMax)
  }

  async explain(query: SqlText): Promise<QueryPlan> {
    return sqlitePlan(this.connection.plan(query))
  }

  /** Without rows nothing takes long. */
  scan<Row>(query: SqlText): Promise<Row[]> {
    return this.all<Row>(query)
  }

  write<T>(work: Work<T>): Promise<T> {
    return runAtOnce(this.connection, work)
  }

  async buildIndexes(): Promise<void> {}

  async synced(): Promise<void> {}

  #read<Row>(query: PageQuery, bytesMax: number): PageRows<Row> {
    const some = this.connection.some(plainPage(query), bytesMax)
    query.onRead?.(some)
    const { scalar, onRead } = query
    return { ...some, scalar: scalar && !onRead ? readScalar(this.connection, scalar) : null } as PageRows<Row>
  }
}

export class StandIns {
  readonly #prepare: PrepareInstance
  /** By namespace and purpose. */
  readonly #standIns = new Map<string, Promise<StandIn>>()
  #lastRehearsal: Promise<unknown> = Promise.resolve()

  constructor(prepare: PrepareInstance) {
    this.#prepare = prepare
  }

  /** The database whose rows an instance without a file has: none but those that its preparation inserts. */
  forReads(namespace: string): Promise<Database> {
    return this.#find(namespace, 'read')
  }

  /**
   * Runs `work` in a transaction that is always rolled back. Rehearsals share one connection, so they run one after
   * another.
   */
  rehearse<T>(namespace: string, work: Work<T>): Promise<{ result: T; wrote: boolean }> {
    const rehearsal = this.#lastRehearsal.then(async () =>
      rehearse((await this.#find(namespace, 'rehearse')).connection, work),
    )
    this.#lastRehearsal = rehearsal.catch(() => undefined)
    return rehearsal
  }

  /** Prepares new ones before their next use. */
  prepareAgain(): void {
    this.#standIns.clear()
  }

  async close(): Promise<void> {
    for (const { connection } of await Promise.all(this.#standIns.values())) connection.close()
    this.#standIns.clear()
  }

  /** Reads and rehearsals have a stand-in each, since rows of a rehearsal must never be read. */
  #find(namespace: string, purpose: 'read' | 'rehearse'): Promise<StandIn> {
    const key = `${namespace}:${purpose}`
    let found = this.#standIns.get(key)
    if (!found) {
      const standIn = new StandIn()
      found = this.#prepare(standIn, { namespace, instanceId: null }).then(() => standIn)
      this.#standIns.set(key, found)
    }
    return found
  }
}
