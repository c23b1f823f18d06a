/**
 * How many rows match, and how many did at the moment a page was read. Counted by the database once: equal first counts
 * share one scan, and what was written while it ran is replayed from the change log. From then on every commit moves
 * the total, so a list with its total costs a page and not the table. Bounded per table and in tables; what is evicted
 * is counted again.
 */
import { callerKey } from '../../../access/caller.ts'
import type { Clock } from '../../../base/clock.ts'
import type { DatabaseAddress } from '../../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import type { Expr } from '../../../query/expr.ts'
import { readsOtherTables } from '../../../query/matches.ts'
import type { Change } from '../changes/changes.ts'
import type { LogBounds } from '../changes/trim.ts'
import type { TableCall } from '../resolve-table.ts'
import type { KnownTotals, PageTotal } from './known-totals.ts'
import { createFollowedTotals } from './totals-followed.ts'
import { createLocalTotals } from './totals-local.ts'

export interface Totals {
  /** Rows of the table that satisfy the tree. */
  count(call: TableCall, expr: Expr): Promise<number>
  /** The same at the moment of a page. After two pages that had to be read again, the third counts in its statement. */
  atPage(call: TableCall, expr: Expr, attempt: number): PageTotal
  /** To be called in the same turn as the commit of the change. */
  apply(address: DatabaseAddress, change: Change): void
  /** Forgets everything: the tables may mean something else now. */
  clear(): void
}

/** Pages of one request that may have to be read again. */
export const knownTotalAttempts = 2

const countOf = ({ rows }: TableCall, where: SqlText): SqlText => sql`SELECT count(*) FROM ${rows.from} WHERE ${where}`

/** Nothing to ask: no row satisfies `false`. */
const none: PageTotal = { read: {}, find: async () => 0 }

export function createTotals(clock: Clock, changes: () => LogBounds): Totals {
  const local = createLocalTotals()
  const followed = createFollowedTotals(clock, changes)
  const knownOf = ({ database }: TableCall): KnownTotals => (database.dialect.follow ? followed : local)

  return {
    async count(call, expr) {
      if (expr.kind === 'const' && !expr.value) return 0
      const where = call.backEnd.condition(expr, call.table)
      if (!readsOtherTables(expr)) return knownOf(call).count(call, { expr, where })
      const query = sql`SELECT (${countOf(call, where)}) AS total`
      const [row] = await call.database.all<{ total: unknown }>(query, undefined, callerKey(call.caller))
      return Number(row?.total ?? 0)
    },
    atPage(call, expr, attempt) {
      if (expr.kind === 'const' && !expr.value) return none
      const where = call.backEnd.condition(expr, call.table)
      // With `exists`, a row's membership hangs on other tables, whose changes are not followed here.
      if (!readsOtherTables(expr) && attempt < knownTotalAttempts) return knownOf(call).atPage(call, { expr, where })
      return { read: { alongside: countOf(call, where) }, find: async (total) => Number(total) }
    },
    apply: local.apply,
    clear() {
      local.clear()
      followed.clear()
    },
  }
}
