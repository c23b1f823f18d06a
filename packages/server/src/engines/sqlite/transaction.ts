/** Transactions on the writing connection of a SQLite file. `writer` decides when each begins and commits. */
import type { Append, Transaction } from '../sql/sql.ts'
import type { SqlText } from '../sql/sql-text.ts'
import type { Connection } from './connection.ts'

/** Other statements, which define tables and indexes, change something whatever number of rows they report. */
const writesRows = /^\s*(?:INSERT|UPDATE|DELETE)\b/i

export type Work<T> = (tx: Transaction) => Promise<T>

/** What operations that are committed together append to a log, in order. The last statement waits for what follows. */
export class Appends {
  private waiting: Append | null = null

  constructor(private readonly connection: Connection) {}

  add(statement: Append): void {
    if (this.waiting?.takeOver?.(statement)) return
    this.flush()
    if (statement.takeOver) this.waiting = statement
    else this.connection.run(statement)
  }

  /** Runs what waits. Throws what the statement throws. */
  flush(): void {
    const { waiting } = this
    this.waiting = null
    if (waiting) this.connection.run(waiting)
  }
}

/** Transaction handle. After its operation has ended, a call throws instead of writing into the next transaction. */
export class SqliteTransaction implements Transaction {
  /** Whether it ran a statement that may write. */
  wrote = false
  /** Whether such a statement changed anything. */
  changed = false
  readonly hooks: (() => void)[] = []
  /** First failure of a statement passed to `send`. */
  private failure: unknown
  private open = true

  /** `appends` are flushed before the commit. */
  constructor(
    private readonly connection: Connection,
    private readonly appends: Appends,
  ) {}

  private check(): void {
    if (!this.open) throw new Error('The transaction has ended')
  }

  async all<Row>(query: SqlText): Promise<Row[]> {
    this.check()
    return this.connection.all(query) as Row[]
  }

  async run(query: SqlText): Promise<number> {
    return this.perform(query)
  }

  /** The writing connection runs one transaction at a time: every row is locked already. */
  async lockRow<Row>(query: SqlText): Promise<Row | null> {
    this.check()
    return (this.connection.all(query)[0] as Row | undefined) ?? null
  }

  send(query: SqlText, explain?: (error: unknown) => unknown): void {
    try {
      this.perform(query)
    } catch (error) {
      if (explain) throw explain(error)
      this.failure ??= error
    }
  }

  append(statement: Append): void {
    this.check()
    this.wrote = true
    this.changed = true
    try {
      this.appends.add(statement)
    } catch (error) {
      this.failure ??= error
    }
  }

  /** The writing connection runs one transaction at a time: every lock is held already. */
  async lock(): Promise<void> {
    this.check()
  }

  private perform(query: SqlText): number {
    this.check()
    const isOfRows = writesRows.test(query.text)
    // What waits refers to a table that this statement may change.
    if (!isOfRows) this.appends.flush()
    const rows = this.connection.run(query)
    this.wrote = true
    this.changed ||= rows > 0 || !isOfRows
    return rows
  }

  afterCommit(hook: () => void): void {
    this.check()
    this.hooks.push(hook)
  }

  /** Ends the handle. Throws the first failure of a statement passed to `send`. */
  finish(): void {
    this.open = false
    if (this.failure !== undefined) throw this.failure
  }

  end(): void {
    this.open = false
  }
}

/** Runs `work` without a transaction, on a database that has no other user. */
export async function runAtOnce<T>(connection: Connection, work: Work<T>): Promise<T> {
  const appends = new Appends(connection)
  const tx = new SqliteTransaction(connection, appends)
  const result = await work(tx)
  tx.finish()
  appends.flush()
  for (const hook of tx.hooks) hook()
  return result
}

/** Runs `work` in a transaction that is always rolled back. */
export async function rehearse<T>(connection: Connection, work: Work<T>): Promise<{ result: T; wrote: boolean }> {
  const appends = new Appends(connection)
  const tx = new SqliteTransaction(connection, appends)
  connection.exec('BEGIN IMMEDIATE')
  try {
    const result = await work(tx)
    tx.finish()
    appends.flush()
    return { result, wrote: tx.wrote }
  } finally {
    tx.end()
    connection.exec('ROLLBACK')
  }
}
