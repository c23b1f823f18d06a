/**
 * Totals where several processes write: counted once, then moved by what the change log holds since. Each answer is
 * exact as of its own statement: the log is asked for what this statement sees and the last one did not.
 */
import type { Clock } from '../../base/clock.ts'
import { createLru } from '../../base/lru.ts'
import type { Follow } from '../../engines/dialect.ts'
import { ident, type SqlText, sql } from '../../engines/sql-text.ts'
import {
  changesKeptMinMs,
  followedBytesMax,
  followedChangesMax,
  openInstancesMax,
  rememberedTotalsMax,
} from '../../limits.ts'
import type { Expr } from '../../query/expr.ts'
import { matches, type Row } from '../../query/matches.ts'
import { changeLog, readBefore } from './changes.ts'
import type { RecordRow } from './rows.ts'
import type { TableCall } from './tables.ts'
import { findTrimmed, type LogBounds } from './trim.ts'

interface Followed {
  readonly total: number
  readonly snapshot: string
  /** When the snapshot was taken: the log must reach back that far. */
  readonly atMs: number
}

export interface FollowedTotals {
  /** Rows that the condition `where` (the tree `expr` as SQL, without `exists`) selects. */
  count(call: TableCall, follow: Follow, expr: Expr, where: SqlText): Promise<number>
  clear(): void
}

/** As many as an embedded server remembers; what falls out is counted again. */
const totalsMax = openInstancesMax * rememberedTotalsMax

export function createFollowedTotals(clock: Clock, changes: () => LogBounds): FollowedTotals {
  const known = createLru<string, Followed>(totalsMax)

  async function countAnew(call: TableCall, where: SqlText): Promise<Followed> {
    const atMs = clock.now()
    const snapshot = call.database.dialect.logView.snapshot(changeLog(call.table))
    const [row] = await call.database.all<{ total: unknown; snapshot: string }>(
      sql`SELECT count(*) AS total, ${snapshot} AS snapshot FROM ${call.rows.from} WHERE ${where}`,
    )
    return { total: Number(row?.total ?? 0), snapshot: row?.snapshot ?? '', atMs }
  }

  /** Whether changes since then may be gone; a young one never is. */
  async function isTrimmedSince({ database, address }: TableCall, { snapshot, atMs }: Followed): Promise<boolean> {
    if (clock.now() - atMs < changesKeptMinMs / 2) return false
    return database.dialect.logView.isBeyond(await findTrimmed(database, address.namespace), snapshot)
  }

  /** The total moved by the changes since; null when there are too many to be worth following. */
  async function moveOn(call: TableCall, follow: Follow, expr: Expr, last: Followed): Promise<Followed | null> {
    const atMs = clock.now()
    const log = call.database.dialect.from(changeLog(call.table), ident('_changes'))
    const limit = followedChangesMax + 1
    const bounds = { limit, bytesMax: followedBytesMax }
    const query = follow.changesSince(log, call.table.name, last.snapshot, bounds)
    const [row] = await call.database.all<{ snapshot: string; fits: boolean; changes: string | null }>(query)
    if (!row?.fits) return null
    const seen = row.changes === null ? [] : (JSON.parse(row.changes) as [string | null, string | null][])
    if (seen.length === limit || (await isTrimmedSince(call, last))) return null
    const isIn = (row: Row | null): number => (row !== null && matches(expr, row) ? 1 : 0)
    const moved = seen.reduce((sum, [before, afterText]) => {
      const after = afterText === null ? null : (JSON.parse(afterText) as RecordRow)
      return sum - isIn(readBefore(before, after)) + isIn(after)
    }, 0)
    return { total: last.total + moved, snapshot: row.snapshot, atMs }
  }

  return {
    async count(call, follow, expr, where) {
      const { namespace, instanceId } = call.address
      const key = JSON.stringify([namespace, instanceId, call.table.name, where.text, where.values])
      const last = known.get(key)
      // Half the log's age leaves room for clocks that differ between nodes.
      const isFollowable = last && clock.now() - last.atMs < changes().retentionMs / 2
      const next = (isFollowable && (await moveOn(call, follow, expr, last))) || (await countAnew(call, where))
      known.set(key, next)
      return next.total
    },
    clear: () => known.clear(),
  }
}
