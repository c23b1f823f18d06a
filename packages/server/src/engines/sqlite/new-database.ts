/**
 * The database of a static namespace that has no file yet. Its first use creates the file, so that a server has none
 * for features that it does not use: a start that creates all of them waits for several syncs of the disk for each.
 */
import type { PageQuery, PageRows } from '../sql/page-query.ts'
import type { QueryPlan } from '../sql/query-plan.ts'
import type { ScanOptions } from '../sql/scan-queue.ts'
import type { Database, WriteOptions } from '../sql/sql.ts'
import type { SqlText } from '../sql/sql-text.ts'
import { sqliteDialect } from './dialect.ts'
import type { Work } from './transaction.ts'

export class NewDatabase implements Database {
  readonly dialect = sqliteDialect
  readonly readEncodedPage = null
  readonly #open: () => Database

  /** `open` creates the file or returns the open database. Throws `EngineError`. */
  constructor(open: () => Database) {
    this.#open = open
  }

  all<Row>(query: SqlText, onRead?: (rows: Row[]) => void, caller?: string): Promise<Row[]> {
    return this.#use((database) => database.all<Row>(query, onRead, caller))
  }

  readPage<Row>(query: PageQuery): Promise<PageRows<Row> | null> {
    return this.#use((database) => database.readPage<Row>(query))
  }

  readLargePage<Row>(query: PageQuery, bytesMax: number): Promise<PageRows<Row>> {
    return this.#use((database) => database.readLargePage<Row>(query, bytesMax))
  }

  explain(query: SqlText): Promise<QueryPlan> {
    return this.#use((database) => database.explain(query))
  }

  scan<Row>(query: SqlText, options: ScanOptions): Promise<Row[]> {
    return this.#use((database) => database.scan<Row>(query, options))
  }

  write<T>(work: Work<T>, options?: WriteOptions): Promise<T> {
    return this.#use((database) => database.write(work, options))
  }

  /** A new file has no rows. */
  async buildIndexes(): Promise<void> {}

  synced(): Promise<void> {
    return this.#use((database) => database.synced())
  }

  #use<T>(task: (database: Database) => Promise<T>): Promise<T> {
    try {
      return task(this.#open())
    } catch (error) {
      return Promise.reject(error)
    }
  }
}
