/**
 * The handle of a write that shares a transaction with others of its table. The writes of a group run at the same time
 * on one connection, so none may read what another has written: a statement that reads their table ends the write's
 * part in the group, and so does a lock that is not free, for which the others would have to wait.
 */
import type { RowLock } from '../../sql/sql.ts'
import { type SqlText, sql } from '../../sql/sql-text.ts'
import type { Answer } from '../wire/wire.ts'
import { PostgresTransaction, rowLocks } from './transaction.ts'

/** Thrown into a write that cannot share a transaction: it runs again in one of its own. */
export class NeedsOwnTransaction extends Error {}

export interface SharedTransactionOptions {
  readonly query: (text: SqlText) => Promise<Answer>
  readonly takeLocks: (keys: readonly string[]) => void
  /** Whether a statement mentions the table of the group. */
  readonly mentionsTable: (text: SqlText) => boolean
}

export class SharedTransaction extends PostgresTransaction {
  /** Whether a statement that writes was sent. */
  hasWritten = false
  /** Whether the write has to run again in a transaction of its own. */
  needsOwn = false
  private readonly mentionsTable: (text: SqlText) => boolean

  constructor({ query, takeLocks, mentionsTable }: SharedTransactionOptions) {
    super(query, takeLocks)
    this.mentionsTable = mentionsTable
  }

  override async all<Row>(text: SqlText): Promise<Row[]> {
    if (this.mentionsTable(text)) this.leave()
    return super.all(text)
  }

  /** The row of the write itself, or one of another table. A row that another transaction has locked is not found. */
  override async lockRow<Row>(text: SqlText, against: RowLock): Promise<Row | null> {
    if (against === 'removal' && this.mentionsTable(text)) this.leave()
    const [row] = await super.all<Row>(sql`${text}${rowLocks[against]} SKIP LOCKED`)
    return row ?? this.leave()
  }

  override async lock(...keys: readonly string[]): Promise<void> {
    if (keys.length > 0 && !(await this.tryLock(keys))) this.leave()
  }

  override run(text: SqlText): Promise<number> {
    this.hasWritten = true
    return super.run(text)
  }

  override send(text: SqlText, explain?: (error: unknown) => unknown): void {
    this.hasWritten = true
    super.send(text, explain)
  }

  private leave(): never {
    this.needsOwn = true
    throw new NeedsOwnTransaction('The write needs a transaction of its own')
  }
}
