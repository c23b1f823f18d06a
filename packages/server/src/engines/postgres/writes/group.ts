/**
 * Runs writes of different rows of one table in one transaction. They run at the same time, so their reads leave
 * together, and so do their writes with the COMMIT; writes of one row follow each other. There is no savepoint per
 * write, which would cost two statements each: if a statement fails, or a write fails after it has written, the group
 * is undone, and each of its writes runs again in a transaction of its own. No outcome is known before the commit, not
 * even a refusal, since a write may have read what an earlier one of the same row has written.
 */
import { sharedBytesMax, sharedLockMs, sharedStatementMs } from '../../../limits/postgres.ts'
import type { Transaction } from '../../sql/sql.ts'
import type { SqlText } from '../../sql/sql-text.ts'
import type { PreparedConnection } from '../prepared-connection.ts'
import type { Statements } from '../statements.ts'
import type { Answer, Prepared } from '../wire/wire.ts'
import { begin, isCommitted, rollBack } from './boundaries.ts'
import type { Locks } from './lock-queue.ts'
import { NeedsOwnTransaction, SharedTransaction } from './shared-transaction.ts'

/** A write that shares a transaction. */
export interface Member {
  readonly instanceId: string | null
  /** The table, as `namespace.table`. */
  readonly key: string
  /** The id of its row; null for a new row. */
  readonly row: string | null
  readonly locks: Locks
  readonly work: (tx: Transaction) => Promise<unknown>
  resolve(result: unknown): void
  /** With `NeedsOwnTransaction` if the write has to run again. */
  reject(error: unknown): void
}

/** Neither a lock nor a slow statement of one write delays the others for long. */
const limits: Prepared = {
  name: 'shared',
  text: `SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true)`,
  values: [String(sharedLockMs), String(sharedStatementMs)],
}

type Outcome =
  | { readonly kind: 'done'; readonly tx: SharedTransaction; readonly result: unknown }
  | { readonly kind: 'refused'; readonly error: unknown }
  | { readonly kind: 'again' }

/** Identifies the row of a write within its table; null for a new one. */
export const rowKeyOf = ({ instanceId, row }: Member): string | null =>
  row === null ? null : `${instanceId ?? ''}\n${row}`

class Group {
  /** Whether nothing of it may be committed. */
  isUndone = false
  private bytes = 0
  /** The last write of each row. */
  private readonly lastOfRow = new Map<string, Promise<Outcome>>()

  constructor(
    private readonly line: PreparedConnection,
    private readonly statements: Statements,
  ) {}

  get isFull(): boolean {
    return this.bytes > sharedBytesMax
  }

  run(member: Member): Promise<Outcome> {
    const row = rowKeyOf(member)
    const previous = row === null ? undefined : this.lastOfRow.get(row)
    const outcome = previous ? previous.then(() => this.attempt(member)) : this.attempt(member)
    if (row !== null) this.lastOfRow.set(row, outcome)
    return outcome
  }

  private async attempt(member: Member): Promise<Outcome> {
    if (this.isUndone) return { kind: 'again' }
    const { locks, key, instanceId } = member
    const tx = new SharedTransaction({
      query: (text) => this.query(text, instanceId),
      takeLocks: locks.take,
      mentionsTable: (text) => this.statements.prepare(text, instanceId).tables.has(key),
    })
    let outcome: Outcome
    try {
      outcome = { kind: 'done', tx, result: await member.work(tx) }
    } catch (error) {
      outcome = { kind: 'refused', error }
    }
    tx.end()
    // Work that caught the refusal of a lock has run without it.
    if (tx.needsOwn || locks.isContended) outcome = { kind: 'again' }
    if (outcome.kind !== 'done' && tx.hasWritten) this.isUndone = true
    return outcome
  }

  private async query(text: SqlText, instanceId: string | null): Promise<Answer> {
    for (const value of text.values) if (typeof value === 'string') this.bytes += value.length
    try {
      return await this.line.send(this.statements.prepare(text, instanceId), 'tick')
    } catch (error) {
      this.isUndone = true
      throw error
    }
  }
}

/** Commits the group, or rolls it back; whether it has committed. Rejects where that is unknown. */
async function endGroup(group: Group, line: PreparedConnection): Promise<boolean> {
  if (!group.isUndone) return isCommitted(line)
  await rollBack(line)
  return false
}

function report(members: readonly Member[], outcomes: readonly Outcome[]): void {
  for (const outcome of outcomes) if (outcome.kind === 'done') for (const hook of outcome.tx.hooks) hook()
  for (const [index, outcome] of outcomes.entries()) {
    const member = members[index] as Member
    if (outcome.kind === 'done') member.resolve(outcome.result)
    else if (outcome.kind === 'refused') member.reject(outcome.error)
    else member.reject(new NeedsOwnTransaction())
  }
}

/**
 * Runs the writes and reports the outcomes of those that ran. Returns whether the group has committed, and the writes
 * that are left because the ones before were as large as a group may be. Never rejects.
 */
export async function runGroup(
  line: PreparedConnection,
  statements: Statements,
  members: readonly Member[],
): Promise<{ readonly hasCommitted: boolean; readonly rest: readonly Member[] }> {
  const group = new Group(line, statements)
  for (const statement of [begin, limits]) line.send(statement, 'tick').catch(() => undefined)
  const running: Promise<Outcome>[] = []
  for (const member of members) {
    if (group.isFull || group.isUndone) break
    running.push(group.run(member))
    // The writes before continue, so that the size of the group is known.
    await null
  }
  const ran = members.slice(0, running.length)
  const rest = members.slice(running.length)
  const outcomes = await Promise.all(running)
  try {
    const hasCommitted = await endGroup(group, line)
    report(ran, hasCommitted ? outcomes : outcomes.map(() => ({ kind: 'again' })))
    return { hasCommitted, rest }
  } catch (error) {
    for (const member of ran) member.reject(error)
    return { hasCommitted: false, rest }
  }
}
