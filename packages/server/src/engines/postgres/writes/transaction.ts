/** Transactions on a PostgreSQL connection. `writer` decides when each begins and commits. */

import type { Append, RowLock, Transaction } from '../../sql/sql.ts'
import { type SqlText, sql } from '../../sql/sql-text.ts'
import { postgresDialect } from '../dialect.ts'
import { isConsequence } from '../errors.ts'
import type { Answer } from '../wire/wire.ts'

/**
 * Locks in order of the keys' hashes: PostgreSQL's advisory locks are numbers, and one order for all transactions
 * prevents deadlocks.
 */
const hashesOf = (keys: readonly string[]): SqlText =>
  sql`(SELECT DISTINCT hashtextextended(key, 0) AS hash FROM unnest(${keys}::text[]) AS key ORDER BY 1) AS keys`

const lockKeys = (keys: readonly string[]): SqlText => sql`SELECT pg_advisory_xact_lock(hash) FROM ${hashesOf(keys)}`
const tryLockKeys = (keys: readonly string[]): SqlText =>
  sql`SELECT pg_try_advisory_xact_lock(hash) AS taken FROM ${hashesOf(keys)}`

export const rowLocks: Readonly<Record<RowLock, SqlText>> = {
  change: postgresDialect.forUpdate,
  removal: postgresDialect.forReference,
}

type Explain = (error: unknown) => unknown

/** A statement sent without awaiting its reply. */
interface Sent {
  readonly reply: Promise<unknown>
  readonly explain: Explain | undefined
}

/** Transaction handle on a connection of its own. A call after its operation has ended throws. */
export class PostgresTransaction implements Transaction {
  readonly hooks: (() => void)[] = []
  private readonly sent: Sent[] = []
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
    return (await this.query(text)).rows as Row[]
  }

  async lockRow<Row>(text: SqlText, against: RowLock): Promise<Row | null> {
    this.check()
    return ((await this.query(sql`${text}${rowLocks[against]}`)).rows[0] as Row | undefined) ?? null
  }

  async run(text: SqlText): Promise<number> {
    this.check()
    return (await this.query(text)).changed
  }

  send(text: SqlText, explain?: Explain): void {
    this.check()
    this.keep(this.query(text), explain)
  }

  append(statement: Append): void {
    this.send(statement)
  }

  async lock(...keys: readonly string[]): Promise<void> {
    this.check()
    if (keys.length === 0) return
    this.takeLocks(keys)
    await this.query(lockKeys(keys))
  }

  /** Takes those locks that are free; returns whether all were. */
  protected async tryLock(keys: readonly string[]): Promise<boolean> {
    this.check()
    this.takeLocks(keys)
    const { rows } = await this.query(tryLockKeys(keys))
    return rows.every((row) => (row as { taken: boolean }).taken)
  }

  /** Keeps the reply to a statement, which fails the transaction if it is an error. */
  keep(reply: Promise<unknown>, explain?: Explain): void {
    reply.catch(() => undefined)
    this.sent.push({ reply, explain })
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
    for (const { reply, explain } of this.sent) {
      const reason = await reply.then(
        () => null,
        (error: unknown) => error,
      )
      if (reason !== null && !isConsequence(reason)) return explain ? explain(reason) : reason
    }
    return otherwise
  }
}
