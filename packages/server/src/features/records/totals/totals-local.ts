/**
 * Totals when this process is the only writer: counted once, then updated in memory with every commit. A count in a
 * reader thread sees an older snapshot; the changes since are replayed from the log.
 */
import { callerKey } from '../../../access/caller.ts'
import { createLru } from '../../../base/concurrency/lru.ts'
import { createSingleFlight } from '../../../base/concurrency/single-flight.ts'
import type { DatabaseAddress } from '../../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { followedChangesMax } from '../../../limits/postgres.ts'
import { openInstancesMax, totalReplaySteps } from '../../../limits/sqlite.ts'
import type { Expr } from '../../../query/expr.ts'
import { type Change, changeLog, movedBy } from '../changes/changes.ts'
import { hasRecord, joinedLogOf } from '../changes/inserted-records.ts'
import type { TableCall } from '../resolve-table.ts'
import type { RecordRow, TableRows } from '../rows.ts'
import type { Condition, KnownTotals } from './known-totals.ts'
import { createRememberedTotals, type TableTotals } from './remembered-totals.ts'

interface Counted {
  readonly total: number
  readonly snapshot: string
}

interface TableOfTotals {
  readonly totals: TableTotals
  /** Number of committed changes of the table since this was created. */
  changes: number
}

export interface LocalTotals extends KnownTotals {
  /** To be called in the event-loop tick of the commit. */
  apply(address: DatabaseAddress, change: Change): void
}

/** Each open database has a few tables; evicted totals are counted again. */
const tablesMax = 4 * openInstancesMax

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
  { database, table, rows }: TableCall,
  expr: Expr,
  seq: number,
  onCaughtUp: (moved: number) => void,
): Promise<boolean> {
  const { list, from, number, changeOf } = joinedLogOf(rows, database.dialect)
  let moved = 0
  let after = seq
  let limit = followedChangesMax
  for (let step = 0; step < totalReplaySteps; step++) {
    const source = sql`${from} WHERE "_log".seq > ${after} AND "_log"."table" = ${table.name} AND ${number} > ${after}`
    let isCurrent = false
    let isLast = false
    const page = await database.readPage<RecordRow>({
      list,
      source,
      order: sql` ORDER BY "_log".seq, "_each".key`,
      limit,
      offset: 0,
      key: null,
      onRead({ rows: found }) {
        const changes = (found as RecordRow[]).map(changeOf)
        if (!changes.every(hasRecord)) return
        isCurrent = true
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
  const tables = createLru<string, TableOfTotals>(tablesMax)
  const createTableTotals = createRememberedTotals()
  const counts = createSingleFlight<number>()

  function tableOf({ address, table }: TableCall): TableOfTotals {
    const key = tableKey(address, table.name)
    let found = tables.get(key)
    if (!found) {
      found = { totals: createTableTotals(), changes: 0 }
      tables.set(key, found)
    }
    return found
  }

  /** Counts, and caches the total if the changes since the count's snapshot can be replayed. */
  async function scan(call: TableCall, { expr, where }: Condition, key: string): Promise<number> {
    const { totals } = tableOf(call)
    const remember = (total: number): void => totals.remember(key, expr, total)
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
    const known = tableOf(call).totals.find(key)
    if (known) return Promise.resolve(known.total)
    return counts.run(`${tableKey(call.address, call.table.name)}\n${key}`, () => scan(call, condition, key))
  }

  /** The total as of an older snapshot. */
  async function totalAt(call: TableCall, condition: Condition, snapshot: unknown): Promise<number | null> {
    const key = keyOf(condition)
    const { totals } = tableOf(call)
    let total: number | null = null
    await replay(call, condition.expr, Number(snapshot), (moved) => {
      const known = totals.find(key)
      if (known) total = known.total - moved
    })
    return total
  }

  return {
    count,
    atPage(call, condition) {
      const ofTable = tableOf(call)
      const { totals, changes: changesBefore } = ofTable
      const key = keyOf(condition)
      const known = totals.find(key)
      // Reads requested in one event-loop tick run in order: the count is cached before the page is read.
      const counting = known ? null : count(call, condition)
      // Awaited in `find` only, which is not called if reading the page fails.
      counting?.catch(() => undefined)
      /** Number of changes of the table when the page was read; null until then. */
      let changes: number | null = null
      let total: number | undefined
      return {
        scalar: snapshotOf(call),
        onRead() {
          changes = ofTable.changes
          total = (changes === changesBefore && known ? known : totals.find(key))?.total
          return total ?? null
        },
        async find(snapshot) {
          if (total !== undefined) return total
          if (counting) await counting
          else if (!totals.find(key)) await count(call, condition)
          if (changes === null) return totalAt(call, condition, snapshot)
          // A count in a thread takes longer than the page; it is valid for the page if nothing changed in between.
          const isUnchanged = tableOf(call) === ofTable && changes === ofTable.changes
          return isUnchanged ? (totals.find(key)?.total ?? null) : null
        },
      }
    },
    apply(address, { table, before, after }) {
      const found = tables.get(tableKey(address, table.name))
      if (!found) return
      found.changes += 1
      found.totals.apply(before, after)
    },
    clear: () => tables.clear(),
  }
}
