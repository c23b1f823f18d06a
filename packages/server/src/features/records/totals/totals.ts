/**
 * Cached totals: the number of matching rows, now or as of the snapshot of a page. The database counts once; concurrent
 * first counts share one scan, and changes during the scan are replayed from the change log. From then on every commit
 * updates the total, so a list with a total costs one page instead of a table scan. The cache is bounded per table and
 * in the number of tables; evicted totals are counted again.
 */
import { callerKey } from '../../../access/caller.ts'
import type { Clock } from '../../../base/clock.ts'
import type { DatabaseAddress } from '../../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { type Expr, isNever } from '../../../query/expr.ts'
import { readsOtherTables } from '../../../query/matches.ts'
import type { Change } from '../changes/changes.ts'
import type { LogBounds } from '../changes/trim.ts'
import type { TableCall } from '../resolve-table.ts'
import type { Condition, KnownTotals, PageTotal } from './known-totals.ts'
import { createFollowedTotals } from './totals-followed.ts'
import { createLocalTotals } from './totals-local.ts'

export interface Totals {
  /** Rows of the table that satisfy the tree. */
  count(call: TableCall, expr: Expr): Promise<number>
  /**
   * The same as of a page's snapshot. From attempt `knownTotalAttempts` on, the count is part of the page's statement.
   */
  atPage(call: TableCall, condition: Condition, attempt: number): PageTotal
  /** To be called in the event-loop tick of the commit. */
  apply(address: DatabaseAddress, change: Change): void
  /** Clears the cache, since the tables may have changed. */
  clear(): void
}

/** Attempts at using a cached total for a page before counting in its statement. */
export const knownTotalAttempts = 2

const countOf = ({ rows }: TableCall, where: SqlText): SqlText => sql`SELECT count(*) FROM ${rows.from} WHERE ${where}`

/** No row satisfies `false`. */
const none: PageTotal = { find: async () => 0 }

/** Counts the rows of the table that satisfy the tree, in the database. */
export async function countRows(call: TableCall, expr: Expr): Promise<number> {
  if (isNever(expr)) return 0
  const query = sql`SELECT (${countOf(call, call.backEnd.condition(expr, call.table))}) AS total`
  const [row] = await call.database.all<{ total: unknown }>(query, undefined, callerKey(call.caller))
  return Number(row?.total ?? 0)
}

export function createTotals(clock: Clock, changes: () => LogBounds): Totals {
  const local = createLocalTotals()
  const followed = createFollowedTotals(clock, changes)
  const knownOf = ({ database }: TableCall): KnownTotals => (database.dialect.follow ? followed : local)

  return {
    async count(call, expr) {
      if (isNever(expr)) return 0
      // With `exists`, the total depends on other tables, whose changes are not tracked here.
      if (readsOtherTables(expr)) return countRows(call, expr)
      return knownOf(call).count(call, { expr, where: call.backEnd.condition(expr, call.table) })
    },
    atPage(call, condition, attempt) {
      const { expr, where } = condition
      if (isNever(expr)) return none
      if (!readsOtherTables(expr) && attempt < knownTotalAttempts) return knownOf(call).atPage(call, condition)
      return { scalar: countOf(call, where), find: async (total) => Number(total) }
    },
    apply: local.apply,
    clear() {
      local.clear()
      followed.clear()
    },
  }
}
