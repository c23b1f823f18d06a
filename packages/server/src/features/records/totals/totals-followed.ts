/**
 * Totals when several processes write: counted once, then updated with the changes in the log since. Each total is
 * exact as of its own statement: the log query selects the changes visible to this statement and not to the previous
 * one.
 */
import type { Clock } from '../../../base/clock.ts'
import { createLru } from '../../../base/concurrency/lru.ts'
import { createSingleFlight } from '../../../base/concurrency/single-flight.ts'
import type { Follow } from '../../../engines/sql/dialect.ts'
import { ident, type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { followedBytesMax, followedChangesMax } from '../../../limits/postgres.ts'
import { openInstancesMax, rememberedTotalsMax } from '../../../limits/sqlite.ts'
import type { Expr } from '../../../query/expr.ts'
import type { Row } from '../../../query/matches.ts'
import { changeLog, movedBy, parseRecord, readBefore } from '../changes/changes.ts'
import { type LogBounds, mayBeTrimmed } from '../changes/trim.ts'
import type { TableCall } from '../resolve-table.ts'
import type { Condition, KnownTotals } from './known-totals.ts'

/** A change in the log; `isLater` if it is in the requested snapshot and not in the known one. */
interface LogChange {
  readonly before: Row | null
  readonly after: Row | null
  readonly isLater: boolean
}

interface Followed {
  readonly total: number
  readonly snapshot: string
  /** When the snapshot was taken; the log must reach back to that time. */
  readonly atMs: number
}

/** As many as an embedded server caches; evicted totals are counted again. */
const totalsMax = openInstancesMax * rememberedTotalsMax

const logOf = ({ database, table }: TableCall): SqlText => database.dialect.from(changeLog(table), ident('_changes'))

export function createFollowedTotals(clock: Clock, changes: () => LogBounds): KnownTotals {
  const known = createLru<string, Followed>(totalsMax)
  const counts = createSingleFlight<Followed>()

  async function scan({ database, table, rows }: TableCall, where: SqlText): Promise<Followed> {
    const atMs = clock.now()
    const snapshot = database.dialect.logView.snapshot(changeLog(table))
    const [row] = await database.all<{ total: unknown; snapshot: string }>(
      sql`SELECT count(*) AS total, ${snapshot} AS snapshot FROM ${rows.from} WHERE ${where}`,
    )
    return { total: Number(row?.total ?? 0), snapshot: row?.snapshot ?? '', atMs }
  }

  const isTrimmedSince = ({ database, address }: TableCall, last: Followed): Promise<boolean> =>
    mayBeTrimmed(database, address.namespace, last, clock.now())

  const keyOf = ({ address, table }: TableCall, { where }: Condition): string =>
    JSON.stringify([address.namespace, address.instanceId, table.name, where.text, where.values])

  /** A total that can still be updated. Half of the retention leaves a margin for clock skew between nodes. */
  function find(key: string): Followed | undefined {
    const last = known.get(key)
    return last && clock.now() - last.atMs < changes().retentionMs / 2 ? last : undefined
  }

  const countOnce = (key: string, call: TableCall, { where }: Condition): Promise<Followed> =>
    counts.run(key, async () => {
      const counted = await scan(call, where)
      known.set(key, counted)
      return counted
    })

  /** The changes in a query result; null if there are too many to apply. */
  function changesOf(row: { fits: boolean; changes: string | null } | undefined): LogChange[] | null {
    if (!row?.fits) return null
    const changes = row.changes === null ? [] : (JSON.parse(row.changes) as [string | null, string | null, boolean?][])
    if (changes.length > followedChangesMax) return null
    return changes.map(([before, text, isLater = true]) => {
      const after = parseRecord(text)
      return { before: readBefore(before, after), after, isLater }
    })
  }

  const bounds = { limit: followedChangesMax + 1, bytesMax: followedBytesMax }

  /** Updates the total with the changes since; null if there are too many. */
  async function advance(call: TableCall, follow: Follow, expr: Expr, last: Followed): Promise<Followed | null> {
    const atMs = clock.now()
    const query = follow.changesSince(logOf(call), call.table.name, last.snapshot, bounds)
    const [row] = await call.database.all<{ snapshot: string; fits: boolean; changes: string | null }>(query)
    const seen = changesOf(row)
    if (!row || !seen || (await isTrimmedSince(call, last))) return null
    return { total: last.total + movedBy(expr, seen), snapshot: row.snapshot, atMs }
  }

  /** The total as of a snapshot before or after the known one; null if there are too many changes. */
  async function moveTo(call: TableCall, follow: Follow, expr: Expr, last: Followed, snapshot: string) {
    if (snapshot === last.snapshot) return last.total
    const query = follow.changesBetween(logOf(call), call.table.name, last.snapshot, snapshot, bounds)
    const [row] = await call.database.all<{ fits: boolean; changes: string | null }>(query)
    const seen = changesOf(row)
    if (!seen || (await isTrimmedSince(call, last))) return null
    const later = seen.filter(({ isLater }) => isLater)
    const earlier = seen.filter(({ isLater }) => !isLater)
    return last.total + movedBy(expr, later) - movedBy(expr, earlier)
  }

  return {
    async count(call, condition) {
      const { follow } = call.database.dialect
      const key = keyOf(call, condition)
      const last = find(key)
      const moved = last && follow ? await advance(call, follow, condition.expr, last) : null
      if (!moved) return (await countOnce(key, call, condition)).total
      known.set(key, moved)
      return moved.total
    },
    atPage(call, condition) {
      const { follow, logView } = call.database.dialect
      const atMs = clock.now()
      return {
        read: { scalar: sql`SELECT ${logView.snapshot(changeLog(call.table))}` },
        async find(scalar) {
          if (!follow) return null
          const snapshot = String(scalar)
          const key = keyOf(call, condition)
          const last = find(key) ?? (await countOnce(key, call, condition))
          const total = await moveTo(call, follow, condition.expr, last, snapshot)
          if (total === null) known.delete(key)
          else if (snapshot === last.snapshot || logView.isAhead(snapshot, last.snapshot))
            known.set(key, { total, snapshot, atMs })
          return total
        },
      }
    },
    clear: () => known.clear(),
  }
}
