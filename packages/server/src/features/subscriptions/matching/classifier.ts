/**
 * Classifies changes: evaluates a subscription's condition for a row as of a position of the log. What the row does not
 * decide alone is queried from the database, whose state may be later than the position: rows of other tables that have
 * changed since are then evaluated as they were.
 */
import type { Log } from '../../../base/log.ts'
import { type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { dependencyAttemptsMax } from '../../../limits/subscriptions.ts'
import { asOf, noPast, type Past } from '../../../query/dependencies.ts'
import type { Expr } from '../../../query/expr.ts'
import { partiallyEvaluate } from '../../../query/matches.ts'
import type { Change, LogPosition, LogTail, Row } from '../change-feed.ts'
import type { SubscriptionQuery } from './subscription-query.ts'

export type ChangeType = 'added' | 'modified' | 'removed'

/** A position in a log that is followed. */
export interface LogPoint {
  readonly tail: LogTail
  readonly position: LogPosition
}

/** More has changed, or keeps changing, than is followed: the client has to list again. */
export class TooManyChanges extends Error {}

/** What a change is by whether the row is visible before and after it; null where it never is. */
export function transition(before: boolean, after: boolean): ChangeType | null {
  if (after) return before ? 'modified' : 'added'
  return before ? 'removed' : null
}

/** What remains of a condition once a row's values are known: a result, or conditions on other tables. */
export function residual(condition: Expr, row: Row | null): Expr | boolean {
  if (!row) return false
  const rest = partiallyEvaluate(condition, row)
  return rest.kind === 'const' ? rest.value : rest
}

/** The state that rows of an instance had before these changes. */
export function pastOf(changes: readonly Change[], instanceId: string | null): Past {
  const past = new Map<string, Map<string, Row | null>>()
  for (const { table, id, before, instanceId: owner } of changes) {
    if (owner !== instanceId) continue
    const rows = past.get(table) ?? new Map<string, Row | null>()
    past.set(table, rows)
    if (!rows.has(id)) rows.set(id, before)
  }
  return past
}

/**
 * Repeats reads until no table that the condition reads has changed between the position and the last of the reads,
 * except for the rows in `past`. Throws `TooManyChanges`.
 */
export async function readAsOf<T>(
  { call, tables }: SubscriptionQuery,
  { tail, position }: LogPoint,
  read: (past: Past, hasMoved: SqlText) => Promise<{ readonly value: T; readonly moved: unknown }>,
): Promise<T> {
  let [past, end] = [noPast, position]
  for (let attempt = 0; attempt < dependencyAttemptsMax; attempt++) {
    const { value, moved } = await read(past, tail.hasChangedSince(end, tables))
    if (!call.backEnd.dialect.toBoolean(moved)) return value
    const later = await tail.changesSince(position, tables)
    if (!later) break
    past = pastOf(later.changes, call.address.instanceId)
    end = later.end
  }
  throw new TooManyChanges('The tables that a rule reads keep changing')
}

/** Whether a row is visible before and after a change, in one row. */
export interface Visibility {
  readonly was: unknown
  readonly is: unknown
  readonly moved: unknown
}

export function visibilityStatement(
  { call }: SubscriptionQuery,
  was: Expr | boolean,
  is: Expr | boolean,
  hasMoved: SqlText,
): SqlText {
  const { backEnd, table } = call
  const part = (expr: Expr | boolean): SqlText =>
    backEnd.condition(typeof expr === 'boolean' ? { kind: 'const', value: expr } : expr, table)
  return sql`SELECT (${part(was)}) AS was, (${part(is)}) AS "is", (${hasMoved}) AS moved`
}

export interface Classifier {
  /** What a change is to one subscription. Rejects with `TooManyChanges`. */
  classify(query: SubscriptionQuery, change: Change, at: LogPoint): ChangeType | null | Promise<ChangeType | null>
}

export function createClassifier(log: Log): Classifier {
  /** A failure hides the row and affects no other subscription. */
  async function classifyInDatabase(
    query: SubscriptionQuery,
    { before, after }: Change,
    at: LogPoint,
  ): Promise<ChangeType | null> {
    const { toBoolean } = query.call.backEnd.dialect
    try {
      return await readAsOf(query, at, async (past, hasMoved) => {
        const condition = asOf(query.condition, past)
        const [was, is] = [residual(condition, before), residual(condition, after)]
        const [row] = await query.call.database.all<Visibility>(visibilityStatement(query, was, is, hasMoved))
        return { value: transition(toBoolean(row?.was), toBoolean(row?.is)), moved: row?.moved }
      })
    } catch (error) {
      if (error instanceof TooManyChanges) throw error
      log.error('subscriptions.rule_failed', { channel: query.channel, error })
      return null
    }
  }

  return {
    classify(query, change, at) {
      const { table, instanceId } = change
      if (table !== query.call.table.name || instanceId !== query.call.address.instanceId) return null
      const was = residual(query.condition, change.before)
      const is = residual(query.condition, change.after)
      if (typeof was === 'boolean' && typeof is === 'boolean') return transition(was, is)
      return classifyInDatabase(query, change, at)
    },
  }
}
