/**
 * Judges rows by a subscription's condition as it stood at a place of the log. What the row does not decide by itself
 * is asked of the database, whose present state may be later than the place: rows of other tables that have changed
 * since are then taken as they were.
 */
import type { Log } from '../../base/log.ts'
import { type SqlText, sql } from '../../engines/sql/sql-text.ts'
import { dependencyAttemptsMax } from '../../limits/subscriptions.ts'
import { asOf, noPast, type Past } from '../../query/dependencies.ts'
import type { Expr } from '../../query/expr.ts'
import { settle } from '../../query/matches.ts'
import type { Change, Following, Place, Row } from './feed.ts'
import type { Sight } from './sight.ts'

export type ChangeType = 'added' | 'modified' | 'removed'

/** A place of a log that is followed. */
export interface At {
  readonly following: Following
  readonly place: Place
}

/** More has changed, or goes on changing, than is followed: the client is to list again. */
export class TooMuchChanged extends Error {}

/** What a change is to a subscriber who saw the row before, or sees it after. Null: nothing. */
export function transition(before: boolean, after: boolean): ChangeType | null {
  if (after) return before ? 'modified' : 'added'
  return before ? 'removed' : null
}

export function settled(condition: Expr, row: Row | null): Expr | boolean {
  if (!row) return false
  const left = settle(condition, row)
  return left.kind === 'const' ? left.value : left
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
 * Runs reads until no table that the condition depends on has changed between the place and the last of them but for
 * what `past` holds. Throws `TooMuchChanged`.
 */
export async function atPlace<T>(
  { call, tables }: Sight,
  { following, place }: At,
  read: (past: Past, hasMoved: SqlText) => Promise<{ readonly value: T; readonly moved: unknown }>,
): Promise<T> {
  let [past, end] = [noPast, place]
  for (let attempt = 0; attempt < dependencyAttemptsMax; attempt++) {
    const { value, moved } = await read(past, following.hasMoved(end, tables))
    if (!call.backEnd.dialect.toBoolean(moved)) return value
    const later = await following.since(place, tables)
    if (!later) break
    past = pastOf(later.changes, call.address.instanceId)
    end = later.end
  }
  throw new TooMuchChanged('The tables that a rule depends on keep changing')
}

/** What is asked of a row before and after a change, in one statement. */
export interface Answer {
  readonly was: unknown
  readonly is: unknown
  readonly moved: unknown
}

export function questionOf({ call }: Sight, was: Expr | boolean, is: Expr | boolean, hasMoved: SqlText): SqlText {
  const { backEnd, table } = call
  const part = (expr: Expr | boolean): SqlText =>
    backEnd.condition(typeof expr === 'boolean' ? { kind: 'const', value: expr } : expr, table)
  return sql`SELECT (${part(was)}) AS was, (${part(is)}) AS "is", (${hasMoved}) AS moved`
}

export interface Judge {
  /** What a change is to one subscription. Rejects with `TooMuchChanged`. */
  judge(sight: Sight, change: Change, at: At): ChangeType | null | Promise<ChangeType | null>
}

export function createJudge(log: Log): Judge {
  /** A failure hides the row and harms no other subscription. */
  async function ask(sight: Sight, { before, after }: Change, at: At): Promise<ChangeType | null> {
    const { toBoolean } = sight.call.backEnd.dialect
    try {
      return await atPlace(sight, at, async (past, hasMoved) => {
        const condition = asOf(sight.condition, past)
        const question = questionOf(sight, settled(condition, before), settled(condition, after), hasMoved)
        const [answer] = await sight.call.database.all<Answer>(question)
        return { value: transition(toBoolean(answer?.was), toBoolean(answer?.is)), moved: answer?.moved }
      })
    } catch (error) {
      if (error instanceof TooMuchChanged) throw error
      log.error('subscriptions.judge_failed', { channel: sight.channel, error })
      return null
    }
  }

  return {
    judge(sight, change, at) {
      const { table, instanceId } = change
      if (table !== sight.call.table.name || instanceId !== sight.call.address.instanceId) return null
      const saw = settled(sight.condition, change.before)
      const sees = settled(sight.condition, change.after)
      if (typeof saw === 'boolean' && typeof sees === 'boolean') return transition(saw, sees)
      return ask(sight, change, at)
    },
  }
}
