/** Transactions on a PostgreSQL connection. `writer` decides when each begins and commits. */

import type { Transaction } from '../sql/sql.ts'
import { type SqlText, sql } from '../sql/sql-text.ts'
import type { Answer } from './prepared-connection.ts'

/**
 * Locks in order of the keys' hashes: PostgreSQL's advisory locks are numbers, and one order for all transactions
 * prevents deadlocks.
 */
const lockKeys = (keys: readonly string[]): SqlText =>
  sql`SELECT pg_advisory_xact_lock(hash) FROM (SELECT DISTINCT hashtextextended(key, 0) AS hash
    FROM unnest(${keys}::text[]) AS key ORDER BY 1) AS keys`

/** Transaction handle on a connection of its own. A call after its operation has ended throws. */
export class PostgresTransaction implements Transaction {
  readonly hooks: (() => void)[] = []
  /** Statements sent without awaiting their replies. */
  private readonly sent: Promise<unknown>[] = []
  private open = true

  /** `takeLocks` is called before the statement that locks, and throws where the transaction must run again later. */
  constructor(
    private readonly query: (text: SqlText) => Promise<Answer>,
    private readonly takeLocks: (keys: readonly string[]) => void,
  ) {}

  private check(): void {
    if (!this.open) throw new Error('The transaction has ended')
  }

  async all<Row>(text: SqlText): Promise<Row[]> {
    this.check()
    return [...(await this.query(text)).rows] as Row[]
  }

  async run(text: SqlText): Promise<number> {
    this.check()
    return (await this.query(text)).changed
  }

  send(text: SqlText): void {
    this.check()
    this.sendPrepared(this.query(text))
  }

  async lock(...keys: readonly string[]): Promise<void> {
    this.check()
    if (keys.length === 0) return
    this.takeLocks(keys)
    await this.all(lockKeys(keys))
  }

  sendPrepared(sent: Promise<unknown>): void {
    sent.catch(() => undefined)
    this.sent.push(sent)
  }

  afterCommit(hook: () => void): void {
    this.check()
    this.hooks.push(hook)
  }

  end(): void {
    this.open = false
  }

  /** Waits for every reply; returns the first failure of the statements sent without awaiting, else `otherwise`. */
  async failure(otherwise: unknown): Promise<unknown> {
    for (const { status, reason } of (await Promise.allSettled(this.sent)) as PromiseRejectedResult[])
      if (status === 'rejected') return reason
    return otherwise
  }
}
