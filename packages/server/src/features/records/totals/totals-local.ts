/**
 * Totals when this process is the only writer: counted once, then updated in memory with every commit. A count in a
 * reader thread sees an older snapshot; the changes since are replayed from the log.
 */
import { callerKey } from '../../../access/caller.ts'
import { createLru, type Lru } from '../../../base/concurrency/lru.ts'
import { createSingleFlight } from '../../../base/concurrency/single-flight.ts'
import { selectList } from '../../../engines/sql/page-query.ts'
import type { DatabaseAddress } from '../../../engines/sql/sql.ts'
import { ident, type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { followedChangesMax } from '../../../limits/postgres.ts'
import { openInstancesMax, rememberedTotalsMax, totalReplaySteps } from '../../../limits/sqlite.ts'
import type { Expr } from '../../../query/expr.ts'
import { matches } from '../../../query/matches.ts'
import { type Change, changeLog, movedBy } from '../changes/changes.ts'
import type { TableCall } from '../resolve-table.ts'
import type { TableRows } from '../rows.ts'
import type { Condition, KnownTotals } from './known-totals.ts'

interface Remembered {
  readonly expr: Expr
  total: number
}

interface Counted {
  readonly total: number
  readonly snapshot: string
}

interface LogRow {
  readonly seq: number
  readonly before: string | null
  readonly after: string | null
}

interface TableTotals {
  readonly remembered: Lru<string, Remembered>
  /** Number of committed changes of the table since this was created. */
  changes: number
}

export interface LocalTotals extends KnownTotals {
  /** To be called in the event-loop tick of the commit. */
  apply(address: DatabaseAddress, change: Change): void
}

/** Each open database has a few tables; evicted totals are counted again. */
const tablesMax = 4 * openInstancesMax

const logColumns = selectList([
  { column: ident('seq'), name: 'seq', kind: 'short' },
  { column: ident('before'), name: 'before', kind: 'text' },
  { column: ident('after'), name: 'after', kind: 'text' },
])

const tableKey = ({ namespace, instanceId }: DatabaseAddress, table: string): string =>
  `${namespace}\n${instanceId ?? ''}\n${table}`

const keyOf = ({ where }: Condition): string => JSON.stringify([where.text, where.values])

const snapshots = new WeakMap<TableRows, SqlText>()

/** The log position as SQL, built once per table: lists read it with every page. */
function snapshotOf({ database, table, rows }: TableCall): SqlText {
  let snapshot = snapshots.get(rows)
  if (!snapshot) {
    snapshot = sql`SELECT ${database.dialect.logView.snapshot(changeLog(table))}`
    snapshots.set(rows, snapshot)
  }
  return snapshot
}

/**
 * Sums up the effect on a total of the table's changes after `seq`, in pages of the log. Calls `onCaughtUp` with the
 * sum at a moment when it includes every commit; returns false if that moment was not reached.
 */
async function replay(
  { database, table }: TableCall,
  expr: Expr,
  seq: number,
  onCaughtUp: (moved: number) => void,
): Promise<boolean> {
  let moved = 0
  let after = seq
  let limit = followedChangesMax
  for (let step = 0; step < totalReplaySteps; step++) {
    const source = sql` FROM ${ident('_changes')} WHERE seq > ${after} AND "table" = ${table.name}`
    let isCurrent = false
    let isLast = false
    const page = await database.readPage<LogRow>({
      list: logColumns,
      source,
      order: sql` ORDER BY seq`,
      limit,
      offset: 0,
      key: null,
      here(rows) {
        isCurrent = true
        const changes = rows as LogRow[]
        moved += movedBy(expr, changes)
        after = changes.at(-1)?.seq ?? after
        isLast = changes.length < limit
        if (isLast) onCaughtUp(moved)
      },
    })
    if (isLast) return true
    if (page && !isCurrent) return false
    // Large records: read smaller pages.
    if (!page) limit = Math.max(1, limit >> 2)
  }
  return false
}

export function createLocalTotals(): LocalTotals {
  const tables = createLru<string, TableTotals>(tablesMax)
  const counts = createSingleFlight<number>()

  function totalsOf({ address, table }: TableCall): TableTotals {
    const key = tableKey(address, table.name)
    let totals = tables.get(key)
    if (!totals) {
      totals = { remembered: createLru(rememberedTotalsMax), changes: 0 }
      tables.set(key, totals)
    }
    return totals
  }

  /** Counts, and caches the total if the changes since the count's snapshot can be replayed. */
  async function scan(call: TableCall, { expr, where }: Condition, key: string): Promise<number> {
    const { remembered } = totalsOf(call)
    const remember = (total: number): void => remembered.set(key, { expr, total })
    let isUpToDate = false
    const snapshot = call.database.dialect.logView.snapshot(changeLog(call.table))
    const [counted] = await call.database.all<Counted>(
      sql`SELECT count(*) AS total, ${snapshot} AS snapshot FROM ${call.rows.from} WHERE ${where}`,
      ([now]) => {
        isUpToDate = true
        remember(now?.total ?? 0)
      },
      callerKey(call.caller),
    )
    const total = counted?.total ?? 0
    if (!isUpToDate) await replay(call, expr, Number(counted?.snapshot ?? 0), (moved) => remember(total + moved))
    return total
  }

  const count = (call: TableCall, condition: Condition): Promise<number> => {
    const key = keyOf(condition)
    const known = totalsOf(call).remembered.get(key)
    if (known) return Promise.resolve(known.total)
    return counts.run(`${tableKey(call.address, call.table.name)}\n${key}`, () => scan(call, condition, key))
  }

  /** The total as of an older snapshot. */
  async function totalAt(call: TableCall, condition: Condition, snapshot: unknown): Promise<number | null> {
    const key = keyOf(condition)
    const { remembered } = totalsOf(call)
    let total: number | null = null
    await replay(call, condition.expr, Number(snapshot), (moved) => {
      const known = remembered.get(key)
      if (known) total = known.total - moved
    })
    return total
  }

  return {
    count,
    atPage(call, condition) {
      const totals = totalsOf(call)
      const { remembered } = totals
      const key = keyOf(condition)
      // Reads requested in one event-loop tick run in order: the count is cached before the page is read.
      const counting = remembered.get(key) ? null : count(call, condition)
      // Awaited in `find` only, which is not called if reading the page fails.
      counting?.catch(() => undefined)
      /** Number of changes of the table when the page was read; null until then. */
      let changes: number | null = null
      let total: number | undefined
      return {
        read: {
          alongside: snapshotOf(call),
          here() {
            changes = totals.changes
            total = remembered.get(key)?.total
          },
        },
        async find(snapshot) {
          if (total !== undefined) return total
          if (counting) await counting
          else if (!remembered.get(key)) await count(call, condition)
          if (changes === null) return totalAt(call, condition, snapshot)
          // A count in a thread takes longer than the page; it is valid for the page if nothing changed in between.
          const isUnchanged = totalsOf(call) === totals && changes === totals.changes
          return isUnchanged ? (remembered.get(key)?.total ?? null) : null
        },
      }
    },
    apply(address, { table, before, after }) {
      const totals = tables.get(tableKey(address, table.name))
      if (!totals) return
      totals.changes += 1
      for (const one of totals.remembered.values()) {
        if (before && matches(one.expr, before)) one.total -= 1
        if (after && matches(one.expr, after)) one.total += 1
      }
    },
    clear: () => tables.clear(),
  }
}
