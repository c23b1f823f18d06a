/**
 * How many rows match. Where this process does all writing: counted by the database once, then kept exact in memory by
 * every committed change, so that a list with its total costs a page and not the table. Bounded per table and in
 * tables; what falls out is counted anew.
 */
import type { Clock } from '../../base/clock.ts'
import { createLru, type Lru } from '../../base/lru.ts'
import type { DatabaseAddress } from '../../engines/sql.ts'
import { type SqlText, sql } from '../../engines/sql-text.ts'
import { openInstancesMax, rememberedTotalsMax } from '../../limits.ts'
import type { Expr } from '../../query/expr.ts'
import { asksOtherTables, matches } from '../../query/matches.ts'
import type { Change } from './changes.ts'
import type { TableCall } from './tables.ts'
import { createFollowedTotals } from './totals-followed.ts'
import type { LogBounds } from './trim.ts'

interface Remembered {
  readonly expr: Expr
  total: number
}

interface TableTotals {
  /** Rises with every change: a count begun before a change must not be remembered after it. */
  version: number
  readonly remembered: Lru<string, Remembered>
}

export interface Totals {
  /** Rows of the table that satisfy the tree. */
  count(call: TableCall, expr: Expr): Promise<number>
  /** To be called in the same turn as the commit of the change. */
  apply(address: DatabaseAddress, change: Change): void
  /** Forgets everything: the tables may mean something else now. */
  clear(): void
}

/** Each open database has a handful of tables; more are simply counted again. */
const tablesMax = 4 * openInstancesMax

export function createTotals(clock: Clock, changes: () => LogBounds): Totals {
  const tables = createLru<string, TableTotals>(tablesMax)
  const followed = createFollowedTotals(clock, changes)
  const keyOf = ({ namespace, instanceId }: DatabaseAddress, table: string): string =>
    `${namespace}\n${instanceId ?? ''}\n${table}`

  async function ask({ rows, database }: TableCall, where: SqlText): Promise<number> {
    const [row] = await database.all<{ total: unknown }>(sql`SELECT count(*) AS total FROM ${rows.from} WHERE ${where}`)
    return Number(row?.total ?? 0)
  }

  async function countHere(call: TableCall, expr: Expr, where: SqlText): Promise<number> {
    const tableKey = keyOf(call.address, call.table.name)
    let totals = tables.get(tableKey)
    if (!totals) {
      totals = { version: 0, remembered: createLru(rememberedTotalsMax) }
      tables.set(tableKey, totals)
    }
    const key = JSON.stringify([where.text, where.values])
    const known = totals.remembered.get(key)
    if (known) return known.total
    const { version } = totals
    const total = await ask(call, where)
    if (version === totals.version) totals.remembered.set(key, { expr, total })
    return total
  }

  return {
    count(call, expr) {
      if (expr.kind === 'const' && !expr.value) return Promise.resolve(0)
      const where = call.backEnd.condition(expr, call.table)
      // A row's membership then hangs on other tables, whose changes are not followed here.
      if (asksOtherTables(expr)) return ask(call, where)
      const { follow } = call.database.dialect
      return follow ? followed.count(call, follow, expr, where) : countHere(call, expr, where)
    },
    apply(address, { table, before, after }) {
      const totals = tables.get(keyOf(address, table.name))
      if (!totals) return
      totals.version += 1
      for (const one of totals.remembered.values()) {
        if (before && matches(one.expr, before)) one.total -= 1
        if (after && matches(one.expr, after)) one.total += 1
      }
    },
    clear() {
      tables.clear()
      followed.clear()
    },
  }
}
